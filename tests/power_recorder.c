/*
 * Keeps what a disk would have after a loss of power, for tests: loaded before all other libraries (LD_PRELOAD).
 *
 * Each fsync and fdatasync of something below POWER_TREE copies it to POWER_DISK: of a file all that was written until
 * then, of a folder its names. Nothing else reaches that disk. So it needs to see no write, rename or unlink, also none
 * that a library makes without the C library: what they did is there at the next sync of the file or the folder.
 *
 * A copy is called by inode and time of birth, because numbers of inodes are used again. A copy of a folder has a line
 * for each name: its kind (f or d), what it is called, the name, and a byte 0.
 *
 * POWER_FAILS_AT=n ends the process at its n-th sync, before anything of it is on the disk. The file .syncs there has a
 * byte for each sync.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static long syncs;

static int call(int folder, const char *name, char *key, size_t size, int *is_folder)
{
    struct statx found;
    int flags = AT_SYMLINK_NOFOLLOW | (*name ? 0 : AT_EMPTY_PATH);
    if (statx(folder, name, flags, STATX_INO | STATX_TYPE | STATX_BTIME, &found) != 0)
        return -1;
    *is_folder = S_ISDIR(found.stx_mode);
    snprintf(key, size, "%llu-%lld-%u", (unsigned long long)found.stx_ino, (long long)found.stx_btime.tv_sec,
             found.stx_btime.tv_nsec);
    return S_ISDIR(found.stx_mode) || S_ISREG(found.stx_mode) ? 0 : 1;
}

static int put(int copy, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t written = write(copy, data, length);
        if (written < 0)
            return -1;
        data += written;
        length -= (size_t)written;
    }
    return 0;
}

static int copy_names(int from, int copy)
{
    char key[80], line[NAME_MAX + 100];
    struct dirent *entry;
    int is_folder, result = 0;
    DIR *folder = fdopendir(dup(from));
    if (folder == NULL)
        return -1;
    rewinddir(folder);
    while (result == 0 && (entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        /* Removed since the folder was read: then its name is gone as well. */
        if (call(from, entry->d_name, key, sizeof key, &is_folder) != 0)
            continue;
        int length = snprintf(line, sizeof line, "%c %s %s", is_folder ? 'd' : 'f', key, entry->d_name);
        result = put(copy, line, (size_t)length + 1);
    }
    closedir(folder);
    return result;
}

static int copy_bytes(int from, int copy)
{
    static char piece[1 << 20];
    off_t place = 0;
    ssize_t found;
    while ((found = pread(from, piece, sizeof piece, place)) > 0) {
        if (put(copy, piece, (size_t)found) != 0)
            return -1;
        place += found;
    }
    return found < 0 ? -1 : 0;
}

static void count(const char *disk)
{
    char name[PATH_MAX];
    syncs++;
    snprintf(name, sizeof name, "%s/.syncs", disk);
    int counted = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (counted < 0 || put(counted, "+", 1) != 0)
        perror("power_recorder.c");
    close(counted);
}

/* Copies a file or a folder to a disk, as a whole or not at all. */
static int keep(const char *path, const char *disk)
{
    char key[80], name[PATH_MAX], made[PATH_MAX];
    int is_folder, result = -1;
    int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return -1;
    if (call(from, "", key, sizeof key, &is_folder) == 0) {
        snprintf(name, sizeof name, "%s/%s", disk, key);
        snprintf(made, sizeof made, "%s/.%d", disk, (int)getpid());
        int copy = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (copy >= 0) {
            result = is_folder ? copy_names(from, copy) : copy_bytes(from, copy);
            close(copy);
            if (result == 0)
                result = rename(made, name);
        }
    }
    close(from);
    return result;
}

static int sync_to_disk(int file, long number)
{
    char link[64], path[PATH_MAX];
    const char *tree = getenv("POWER_TREE"), *disk = getenv("POWER_DISK"), *last = getenv("POWER_FAILS_AT");
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = tree && disk ? readlink(link, path, sizeof path - 1) : -1;
    if (length < 0)
        return (int)syscall(number, file);
    path[length] = 0;
    size_t above = strlen(tree);
    if (strncmp(path, tree, above) != 0 || (path[above] != '/' && path[above] != 0))
        return (int)syscall(number, file);
    pthread_mutex_lock(&one);
    count(disk);
    if (last != NULL && syncs == atol(last))
        kill(getpid(), SIGKILL);
    int result = keep(link, disk);
    if (result != 0)
        perror("power_recorder.c");
    pthread_mutex_unlock(&one);
    return result;
}

int fsync(int file)
{
    return sync_to_disk(file, SYS_fsync);
}

int fdatasync(int file)
{
    return sync_to_disk(file, SYS_fdatasync);
}

/* For tests: keeps a path at once; what it is called there is written to key. */
int power_keep(const char *path, const char *disk, char *key, size_t size)
{
    int is_folder;
    pthread_mutex_lock(&one);
    int result = call(AT_FDCWD, path, key, size, &is_folder) == 0 ? keep(path, disk) : -1;
    pthread_mutex_unlock(&one);
    return result;
}
