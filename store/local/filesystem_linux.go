package local

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// networkKinds names file systems that other machines may share. Their locks
// are slow, advisory across hosts or absent, and SQLite's WAL needs memory that
// all users share. The magic numbers of 9P and of FUSE say nothing: containers
// of one machine live on both; remoteFUSE looks closer at FUSE.
var networkKinds = map[int64]string{
	unix.NFS_SUPER_MAGIC:  "nfs",
	unix.SMB_SUPER_MAGIC:  "smb",
	unix.CIFS_SUPER_MAGIC: "cifs",
	unix.SMB2_SUPER_MAGIC: "smb",
	unix.AFS_SUPER_MAGIC:  "afs",
	unix.CODA_SUPER_MAGIC: "coda",
	unix.CEPH_SUPER_MAGIC: "ceph",
	0x0BD00BD0:            "lustre",
	0x47504653:            "gpfs",
}

// remoteFUSE lists the types of mounts that reach other machines through FUSE.
var remoteFUSE = []string{"sshfs", "blobfuse", "blobfuse2", "s3fs", "gcsfuse", "goofys", "rclone", "glusterfs", "ceph", "davfs", "curlftpfs", "mount-s3"}

// networkFileSystem returns the kind of network file system that dir lies on,
// empty for a local one.
func networkFileSystem(dir string) (string, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return "", &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if kind, ok := networkKinds[int64(fs.Type)]; ok {
		return kind, nil
	}
	if int64(fs.Type) != unix.FUSE_SUPER_MAGIC {
		return "", nil
	}
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return "", &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	// Without /proc nobody can tell; the store then trusts the user.
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", nil
	}
	return remoteMount(mounts, fmt.Sprintf("%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev))), nil
}

// remoteMount returns the type of the mount of device (major:minor) in the text
// of /proc/self/mountinfo if it is one of remoteFUSE, else nothing.
func remoteMount(mountinfo []byte, device string) string {
	for line := range bytes.Lines(mountinfo) {
		before, after, found := strings.Cut(string(line), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !found || len(fields) < 3 || len(kind) == 0 || fields[2] != device {
			continue
		}
		_, subtype, _ := strings.Cut(kind[0], ".")
		if slices.Contains(remoteFUSE, subtype) {
			return kind[0]
		}
	}
	return ""
}
