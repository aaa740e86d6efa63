package tailgate;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Supplier;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system, with files that survive a loss of power below the folders that ask for it ({@link #keep}).
 *
 * <p>A file is durable when its content and its name are: after an fsync of the file and one of its folder. Spark writes a file under a temporary name and renames it.
 * In general the content is synced when the file is closed, and the name after the rename, so a file that has its name is whole. A task that commits state does not
 * wait for each file: within {@link #durably} both syncs run beside the rest of the task, and are done when the task ends. A file that was cut short before that has a
 * name that no entry of the log mentions.
 *
 * <p>Two things that Hadoop does are left out. It calls `chmod` for every file and folder, which is a fork of the whole process each: 25 of 85 ms of a tick; the data
 * folder is mode 0700, so there is nothing to set. And it writes a checksum beside every file; Spark's own compression and archives have checksums.
 *
 * <p>On the driver's class path, as `spark.hadoop.fs.file.impl`; it is needed before `spark.jars` are loaded.
 */
public final class DurableFiles extends LocalFileSystem {
  private static final int THREADS = 4;  // concurrent syncs share the commits of the file system's journal
  private static final Set<String> KEPT = ConcurrentHashMap.newKeySet();
  private static final ThreadLocal<List<Future<?>>> PENDING = new ThreadLocal<>();
  private static final ExecutorService SYNCS = Executors.newFixedThreadPool(THREADS, work -> {
    Thread thread = new Thread(work, "tailgate-sync");
    thread.setDaemon(true);
    return thread;
  });

  public DurableFiles() {
    super(new Raw());
    setWriteChecksum(false);
    setVerifyChecksum(false);
  }

  /** Files below this folder are durable from now on, in this process. */
  static void keep(String folder) { KEPT.add(folder.endsWith("/") ? folder : folder + "/"); }

  /** Runs what writes files; they are durable when this returns. */
  static <T> T durably(Supplier<T> work) {
    List<Future<?>> syncs = new ArrayList<>();
    PENDING.set(syncs);
    try {
      T result = work.get();
      for (Future<?> sync : syncs) sync.get();
      return result;
    } catch (ExecutionException e) {
      throw new UncheckedIOException(e.getCause() instanceof IOException io ? io : new IOException(e.getCause()));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new UncheckedIOException(new java.io.InterruptedIOException());
    } finally {
      PENDING.remove();
    }
  }

  private static boolean kept(Path path) {
    String name = path.toUri().getPath();
    for (String folder : KEPT) if (name.startsWith(folder)) return true;
    return false;
  }

  private static java.nio.file.Path local(Path path) { return java.nio.file.Path.of(path.toUri().getPath()); }

  /** Makes a file's content durable, or the names in a folder. */
  private static void sync(java.nio.file.Path path) throws IOException {
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
      channel.force(true);
    }
    Traced.sync(path);
  }

  private static void syncLater(List<Future<?>> pending, java.nio.file.Path path) {
    pending.add(SYNCS.submit(() -> {
      sync(path);
      return null;
    }));
  }

  private static final class Raw extends RawLocalFileSystem {
    @Override public void setPermission(Path path, FsPermission permission) {}

    @Override protected OutputStream createOutputStreamWithMode(Path path, boolean append, FsPermission permission) throws IOException {
      OutputStream out = super.createOutputStreamWithMode(path, append, permission);
      return kept(path) ? new SyncedOnClose(out, local(path)) : out;
    }

    @Override public boolean rename(Path from, Path to) throws IOException {
      boolean renamed = super.rename(from, to);
      if (renamed && kept(to)) {
        List<Future<?>> pending = PENDING.get();
        if (pending == null) sync(local(to).getParent());
        else {
          syncLater(pending, local(to));
          syncLater(pending, local(to).getParent());
        }
      }
      return renamed;
    }

    @Override public boolean mkdirs(Path path) throws IOException {
      if (!kept(path)) return super.mkdirs(path);
      List<java.nio.file.Path> above = new ArrayList<>();
      for (java.nio.file.Path p = local(path); p != null && !Files.exists(p); p = p.getParent()) above.add(p.getParent());
      boolean made = super.mkdirs(path);
      for (java.nio.file.Path p : above) sync(p);
      return made;
    }
  }

  private static final class SyncedOnClose extends FilterOutputStream {
    private final java.nio.file.Path path;
    private boolean closed;

    SyncedOnClose(OutputStream out, java.nio.file.Path path) {
      super(out);
      this.path = path;
    }

    @Override public void write(byte[] bytes, int from, int length) throws IOException { out.write(bytes, from, length); }

    @Override public void close() throws IOException {
      if (closed) return;
      closed = true;
      super.close();
      boolean temporary = path.getFileName().toString().startsWith(".");  // renamed next
      List<Future<?>> pending = PENDING.get();
      if (pending == null) {
        sync(path);
        if (!temporary) sync(path.getParent());
      } else if (!temporary) {
        syncLater(pending, path);
        syncLater(pending, path.getParent());
      }
    }
  }
}
