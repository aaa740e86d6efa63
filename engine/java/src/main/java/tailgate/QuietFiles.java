package tailgate;

import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system without a `chmod` for every file and folder, which is a fork of the whole process each: 25 of 85 ms of a tick. The data folder is
 * mode 0700, so there is nothing to set.
 *
 * <p>On the driver's class path, as `spark.hadoop.fs.file.impl`; it is needed before `spark.jars` are loaded.
 */
public final class QuietFiles extends LocalFileSystem {
  public QuietFiles() {
    super(new RawLocalFileSystem() {
      @Override public void setPermission(Path path, FsPermission permission) {}
    });
  }
}
