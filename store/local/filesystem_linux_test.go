package local

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestRemoteMount(t *testing.T) {
	t.Parallel()
	const mounts = `22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw
40 22 0:45 / /mnt/share rw,nosuid shared:9 - fuse.sshfs me@host:/data rw,user_id=0
41 22 0:46 / /mnt/blob rw - fuse.blobfuse2 blobfuse2 rw
42 22 0:47 / /home/me/overlay rw - fuse.fuse-overlayfs fuse-overlayfs rw
43 22 0:48 / /mnt/ntfs rw - fuseblk /dev/sdb1 rw
broken line
`
	for device, want := range map[string]string{
		"259:1": "", "0:45": "fuse.sshfs", "0:46": "fuse.blobfuse2", "0:47": "", "0:48": "", "9:9": "",
	} {
		if got := remoteMount([]byte(mounts), device); got != want {
			t.Errorf("remoteMount of device %s = %q, want %q", device, got, want)
		}
	}
}

func TestNetworkKindsAreRefusedAndLocalOnesNot(t *testing.T) {
	t.Parallel()
	if networkKinds[unix.NFS_SUPER_MAGIC] != "nfs" || networkKinds[unix.CIFS_SUPER_MAGIC] != "cifs" {
		t.Errorf("networkKinds = %v, want nfs and cifs among them", networkKinds)
	}
	for _, magic := range []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC} {
		if kind, ok := networkKinds[magic]; ok {
			t.Errorf("file system %#x counts as %s", magic, kind)
		}
	}
	if kind, err := networkFileSystem(t.TempDir()); kind != "" || err != nil {
		t.Errorf("networkFileSystem of a temporary directory = %q, error %v", kind, err)
	}
}
