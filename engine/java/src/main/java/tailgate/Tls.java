package tailgate;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.*;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import javax.net.ssl.*;

/** Certificates and keys, as PEM, to what a client of HTTPS shows and trusts. */
final class Tls {
  private static final String[] KEYS = {"RSA", "EC", "EdDSA"};
  private static final char[] NO_PASSWORD = {};

  private Tls() {}

  /** `ca`: whom to trust, or null for those the JVM trusts; `certificate` and `key` (PKCS #8, without a password): who we are, or null. */
  static SSLContext context(String ca, String certificate, String key) throws IOException {
    try {
      TrustManager[] trusts = null;
      if (ca != null) {
        KeyStore store = empty();
        int n = 0;
        for (Certificate c : certificates(ca)) store.setCertificateEntry("ca" + n++, c);
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        trusts = factory.getTrustManagers();
      }
      KeyManager[] shows = null;
      if (key != null) {
        KeyStore store = empty();
        store.setKeyEntry("own", privateKey(key), NO_PASSWORD, certificates(certificate));
        KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        factory.init(store, NO_PASSWORD);
        shows = factory.getKeyManagers();
      }
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(shows, trusts, null);
      return context;
    } catch (GeneralSecurityException e) {
      throw new IOException("the certificates cannot be used: " + e.getMessage(), e);
    }
  }

  private static KeyStore empty() throws GeneralSecurityException, IOException {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    return store;
  }

  private static Certificate[] certificates(String pem) throws GeneralSecurityException {
    return CertificateFactory.getInstance("X.509").generateCertificates(new ByteArrayInputStream(pem.getBytes(StandardCharsets.US_ASCII))).toArray(Certificate[]::new);
  }

  private static PrivateKey privateKey(String pem) throws GeneralSecurityException {
    byte[] bytes = Base64.getMimeDecoder().decode(pem.replaceAll("-----[^-]+-----", ""));
    for (String kind : KEYS) {
      try {
        return KeyFactory.getInstance(kind).generatePrivate(new PKCS8EncodedKeySpec(bytes));
      } catch (InvalidKeySpecException e) {
        continue;  // of another kind
      }
    }
    throw new InvalidKeyException("the private key is of no kind that is known");
  }
}
