package tailgate.state;

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
 * Hadoop's local file system with files that survive a loss of power, in the folders that were
 * named to {@link #keep}.
 *
 * <p>A file is durable when its content and its name are: after an fsync of the file and one of its
 * folder. Spark writes a file under a temporary name and renames it. By default the content is
 * synced when the file is closed and the folder after the rename, so a file with its final name is
 * complete. Within {@link #durably}, for a task that commits state, both syncs run concurrently
 * with the rest of the task and are complete when the task ends. If the power fails before that, no
 * log entry mentions the incomplete file.
 *
 * <p>Two actions of Hadoop are omitted. It runs `chmod` for every file and folder, which forks the
 * whole process: 25 of 85 ms of a tick. The data folder has mode 0700, so this is not needed. It
 * also writes a checksum file for every file; Spark's own compression and archives have checksums.
 *
 * <p>This class must be on the driver's class path, as `spark.hadoop.fs.file.impl`: it is needed
 * before `spark.jars` are loaded.
 */
public final class DurableFiles extends LocalFileSystem {
  private static final int THREADS = 4;  // concurrent syncs share commits of the file system's journal
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

  /** Makes all files below this folder durable from now on, in this process. */
  public static void keep(String folder) { KEPT.add(folder.endsWith("/") ? folder : folder + "/"); }

  /** Runs `work`. The files that it writes are durable when this method returns. */
  public static <T> T durably(Supplier<T> work) {
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

  /** Syncs the content of a file or folder. */
  private static void sync(java.nio.file.Path path) throws IOException {
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
      channel.force(true);
    }
    SyncTrace.content(path);
  }

  /** Syncs the name of a file, in its folder. */
  private static void syncName(java.nio.file.Path path) throws IOException {
    sync(path.getParent());
    SyncTrace.name(path);
  }

  /** Syncs the content and the name of a file, concurrently with the task. */
  private static void syncLater(List<Future<?>> pending, java.nio.file.Path path) {
    pending.add(SYNCS.submit(() -> {
      sync(path);
      return null;
    }));
    pending.add(SYNCS.submit(() -> {
      syncName(path);
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
        if (pending == null) syncName(local(to));
        else syncLater(pending, local(to));
      }
      return renamed;
    }

    @Override public boolean mkdirs(Path path) throws IOException {
      if (!kept(path)) return super.mkdirs(path);
      List<java.nio.file.Path> above = new ArrayList<>();
      for (java.nio.file.Path p = local(path); p != null && !Files.exists(p); p = p.getParent()) above.add(p.getParent());
      boolean created = super.mkdirs(path);
      for (java.nio.file.Path p : above) sync(p);
      return created;
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
      boolean temporary = path.getFileName().toString().startsWith(".");  // it will be renamed
      List<Future<?>> pending = PENDING.get();
      if (pending == null) {
        sync(path);
        if (!temporary) syncName(path);
      } else if (!temporary) syncLater(pending, path);
    }
  }
}
