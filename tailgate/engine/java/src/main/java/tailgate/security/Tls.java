package tailgate.security;

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

/** TLS contexts for HTTPS clients, from certificates and keys in PEM format. */
public final class Tls {
  private static final String[] KEY_ALGORITHMS = {"RSA", "EC", "EdDSA"};
  private static final char[] NO_PASSWORD = {};

  private Tls() {}

  /**
   * Returns a context.
   *
   * @param ca trusted certificates, or null for those that the JVM trusts
   * @param certificate the client's certificate chain; read only if there is a key
   * @param key the client's private key (PKCS #8, without a password), or null
   */
  public static SSLContext context(String ca, String certificate, String key) throws IOException {
    try {
      TrustManager[] trustManagers = null;
      if (ca != null) {
        KeyStore store = emptyStore();
        int n = 0;
        for (Certificate c : certificates(ca)) store.setCertificateEntry("ca" + n++, c);
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        trustManagers = factory.getTrustManagers();
      }
      KeyManager[] keyManagers = null;
      if (key != null) {
        KeyStore store = emptyStore();
        store.setKeyEntry("own", privateKey(key), NO_PASSWORD, certificates(certificate));
        KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        factory.init(store, NO_PASSWORD);
        keyManagers = factory.getKeyManagers();
      }
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(keyManagers, trustManagers, null);
      return context;
    } catch (GeneralSecurityException e) {
      throw new IOException("the certificates cannot be used: " + e.getMessage(), e);
    }
  }

  private static KeyStore emptyStore() throws GeneralSecurityException, IOException {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    return store;
  }

  private static Certificate[] certificates(String pem) throws GeneralSecurityException {
    var bytes = new ByteArrayInputStream(pem.getBytes(StandardCharsets.US_ASCII));
    return CertificateFactory.getInstance("X.509").generateCertificates(bytes).toArray(Certificate[]::new);
  }

  private static PrivateKey privateKey(String pem) throws GeneralSecurityException {
    byte[] bytes = Base64.getMimeDecoder().decode(pem.replaceAll("-----[^-]+-----", ""));
    for (String algorithm : KEY_ALGORITHMS) {
      try {
        return KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(bytes));
      } catch (InvalidKeySpecException e) {
        continue;  // a key of another algorithm
      }
    }
    throw new InvalidKeyException("the private key's algorithm is not supported");
  }
}
