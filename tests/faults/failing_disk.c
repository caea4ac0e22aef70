/* A disk that fails on command, for LD_PRELOAD.
 *
 * DISK_FAULTS names a file with one fault a line, read anew at every call; no file, no faults:
 *
 *     write ENOSPC rocksdb/000     what is written to paths with this in them fails, halfway
 *     sync EIO watermark           fsync and fdatasync of such paths fail
 *     hold sync rocksdb/000        they do not return while this line is there
 *     free 1000000                 statvfs says that so many bytes are free
 *
 * DISK_SYNCS names a file that gets a line, size and path, for each sync that succeeded: the size
 * that the file had before it. What a power cut leaves can be made from that.
 *
 * disk_kill_after(n), called in the process itself, ends it with SIGKILL in the n-th call from then
 * on that changes a file below the folder DISK_FOLDER; a write is done by half before.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))
#define TEXT_SIZE 4096

static atomic_long calls_left;

void disk_kill_after(long calls)
{
    atomic_store(&calls_left, calls);
}

static const char *path_of(int fd, char path[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    path[size > 0 ? size : 0] = 0;
    return path;
}

static int error_of(const char *name)
{
    return strcmp(name, "EIO") == 0 ? EIO : strcmp(name, "ENOSPC") == 0 ? ENOSPC : EINVAL;
}

/* The third word of the first line for the operation whose third word is in the path. */
static int find_fault(const char *operation, const char *path, char value[64])
{
    const char *name = getenv("DISK_FAULTS");
    char text[TEXT_SIZE];
    int file = name ? (int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return 0;
    ssize_t size = syscall(SYS_read, file, text, sizeof text - 1);
    syscall(SYS_close, file);
    text[size > 0 ? size : 0] = 0;
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n")) != NULL) {
        char found[64], where[512] = "";
        if (sscanf(line, "%63s %63s %511s", found, value, where) >= 2 &&
            strcmp(found, operation) == 0 && strstr(path, where))
            return 1;
    }
    return 0;
}

static int fails(const char *operation, int fd)
{
    char path[PATH_MAX], value[64];
    if (!getenv("DISK_FAULTS") || !find_fault(operation, path_of(fd, path), value))
        return 0;
    errno = error_of(value);
    return 1;
}

static int is_last_call(const char *path)
{
    const char *folder = getenv("DISK_FOLDER");
    /* RocksDB writes a log of its own, for people: nothing depends on it. */
    if (atomic_load(&calls_left) <= 0 || !folder || strncmp(path, folder, strlen(folder)) != 0 ||
        strstr(path, "/LOG"))
        return 0;
    return atomic_fetch_sub(&calls_left, 1) == 1;
}

static int is_last_call_of(int fd)
{
    char path[PATH_MAX];
    return atomic_load(&calls_left) > 0 && is_last_call(path_of(fd, path));
}

static void end(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* ------------------------------------------------------------------------------------ writing */

ssize_t write(int fd, const void *data, size_t size)
{
    ssize_t (*real)(int, const void *, size_t) = REAL("write", ssize_t (*)(int, const void *, size_t));
    int is_last = is_last_call_of(fd);
    if (is_last || fails("write", fd)) {
        int error = errno;
        real(fd, data, size / 2);
        if (is_last)
            end();
        errno = error;
        return -1;
    }
    return real(fd, data, size);
}

static ssize_t write_at(const char *name, int fd, const void *data, size_t size, off64_t offset)
{
    ssize_t (*real)(int, const void *, size_t, off64_t) =
        REAL(name, ssize_t (*)(int, const void *, size_t, off64_t));
    int is_last = is_last_call_of(fd);
    if (is_last || fails("write", fd)) {
        int error = errno;
        real(fd, data, size / 2, offset);
        if (is_last)
            end();
        errno = error;
        return -1;
    }
    return real(fd, data, size, offset);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    return write_at("pwrite", fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    return write_at("pwrite64", fd, data, size, offset);
}

/* ------------------------------------------------------------------------------------ syncing */

static void note_sync(int fd, off_t size)
{
    const char *name = getenv("DISK_SYNCS");
    char path[PATH_MAX], line[PATH_MAX + 32];
    if (!name)
        return;
    int length = snprintf(line, sizeof line, "%lld %s\n", (long long)size, path_of(fd, path));
    int file = (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_APPEND | O_CREAT, 0644);
    if (file >= 0) {
        syscall(SYS_write, file, line, (size_t)length);
        syscall(SYS_close, file);
    }
}

static void wait_while_held(int fd)
{
    const struct timespec pause = {0, 5000000L};
    char path[PATH_MAX], value[64];
    path_of(fd, path);
    while (find_fault("hold", path, value))
        nanosleep(&pause, NULL);
}

static int sync_file(const char *name, int fd)
{
    int (*real)(int) = REAL(name, int (*)(int));
    struct stat before = {0};
    if (is_last_call_of(fd))
        end();
    wait_while_held(fd);
    if (fails("sync", fd))
        return -1;
    fstat(fd, &before);
    int result = real(fd);
    if (result == 0)
        note_sync(fd, before.st_size);
    return result;
}

int fsync(int fd)
{
    return sync_file("fsync", fd);
}

int fdatasync(int fd)
{
    return sync_file("fdatasync", fd);
}

/* -------------------------------------------------------------------------------------- names */

int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *) = REAL("rename", int (*)(const char *, const char *));
    if (is_last_call(to))
        end();
    return real(from, to);
}

int unlink(const char *path)
{
    int (*real)(const char *) = REAL("unlink", int (*)(const char *));
    if (is_last_call(path))
        end();
    return real(path);
}

int ftruncate(int fd, off_t size)
{
    int (*real)(int, off_t) = REAL("ftruncate", int (*)(int, off_t));
    if (is_last_call_of(fd))
        end();
    return real(fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    int (*real)(int, off64_t) = REAL("ftruncate64", int (*)(int, off64_t));
    if (is_last_call_of(fd))
        end();
    return real(fd, size);
}

/* -------------------------------------------------------------------------------------- space */

static void change_free(const char *path, unsigned long block, fsblkcnt64_t *free_blocks)
{
    char value[64];
    if (find_fault("free", path, value))
        *free_blocks = block ? strtoull(value, NULL, 10) / block : 0;
}

int statvfs(const char *path, struct statvfs *found)
{
    int (*real)(const char *, struct statvfs *) =
        REAL("statvfs", int (*)(const char *, struct statvfs *));
    int result = real(path, found);
    if (result == 0) {
        fsblkcnt64_t free_blocks = found->f_bavail;
        change_free(path, found->f_frsize, &free_blocks);
        found->f_bavail = free_blocks;
    }
    return result;
}

int statvfs64(const char *path, struct statvfs64 *found)
{
    int (*real)(const char *, struct statvfs64 *) =
        REAL("statvfs64", int (*)(const char *, struct statvfs64 *));
    int result = real(path, found);
    if (result == 0)
        change_free(path, found->f_frsize, &found->f_bavail);
    return result;
}
