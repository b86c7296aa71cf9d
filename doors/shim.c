// Preloaded into a program, this library stands in for what a Linux kernel offers of InfiniBand: the devices
// /dev/infiniband/umadN, issmN, uverbsN and rdma_cm, and /sys/class/infiniband*. It knows nothing of management
// datagrams, verbs or connections: what is opened is a connection to the server, what is written or asked of it is a
// message, and what is read is one too. What is written may have an answer: bytes and descriptors to be put at addresses of the program's. What is
// mapped is a memory file of the server's. The program's memory the server reaches by itself, if the kernel allows it.
//
// It keeps no state. Whether a descriptor is a device, the kernel says: its peer is the server's socket. So dup(),
// fork(), exec(), close() and close_range() need no help, and a process that dies is seen by the server as any other end.
//
//   $IRONBAND_DIR/socket       the server listens here
//   $IRONBAND_DIR/hosts/HOST   the root of the files that a program sees: HOST is $IRONBAND_HOST, else "default"
//
// A message to the server is a struct request and some bytes. With it goes one end of a socket pair, to which the server
// sends a struct reply and some bytes. Bytes that are too many for a message are in a memory file that goes along.
#define _GNU_SOURCE
#include <asm/ioctls.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <linux/ioctl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { VERSION = 2, MOST_INLINE = 1 << 16, MOST_IOCTL = 1 << 14 };  // as in protocol.py
enum { OPEN = 1, WRITE = 2, IOCTL = 3, WAIT = 4, MAP = 5, WHICH = 6 };
enum { MAJOR = 231, MOST_ANSWER = 1 << 12 };

struct request { uint32_t operation, flags; uint64_t argument; };
struct reply { int32_t error, result; };
enum { BYTES, DESCRIPTOR, TAKEN };
struct put { uint64_t address; uint32_t length, kind; };  // in the reply to WRITE; then the bytes
struct arrival { uint32_t total, least; };  // before what is read: its bytes, and those that a read must have room for

#define REAL(name) static typeof(name) *real; if (!real) real = (typeof(name) *)dlsym(RTLD_NEXT, #name)

static const char *directory(void) {
    static const char *found;
    if (!found) {
        const char *given = getenv("IRONBAND_DIR");
        found = given && *given ? given : "";
    }
    return *found ? found : NULL;
}

// Says once why there is no device, of which programs say at the most that there is none.
static void tell(const char *missing) {
    static int told;
    int before = errno;
    if (!told++)
        dprintf(STDERR_FILENO, "ironband: %s: %s; is there a server, and has it that host (IRONBAND_DIR, IRONBAND_HOST)?\n",
                missing, strerror(before));
    errno = before;
}

// The file that stands in for PATH, which is PATH itself if it is none of ours.
static const char *stand_in(const char *path, char *buffer) {
    if (!path || !directory()) return path;
    if (strncmp(path, "/sys/class/infiniband", 21) && strncmp(path, "/dev/infiniband", 15)) return path;
    const char *host = getenv("IRONBAND_HOST");
    if (!host || !*host) host = "default";
    int is_name = !strchr(host, '/') && strcmp(host, ".") && strcmp(host, "..");
    int length = snprintf(buffer, PATH_MAX, "%s/hosts/%s", directory(), host), before = errno;
    errno = ENOENT;
    if (!is_name || syscall(SYS_faccessat, AT_FDCWD, buffer, F_OK)) tell(buffer);
    errno = before;
    if (!is_name) length = snprintf(buffer, PATH_MAX, "%s/no-host", directory());
    if (length < PATH_MAX) snprintf(buffer + length, PATH_MAX - length, "%s", path);
    return buffer;
}

// The server's address; 0 if its name is too long for one.
static socklen_t server_address(struct sockaddr_un *address) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int length = snprintf(address->sun_path, sizeof address->sun_path, "%s/socket", directory());
    return length < (int)sizeof address->sun_path ? offsetof(struct sockaddr_un, sun_path) + length + 1 : 0;
}

static int is_device(int fd) {
    struct sockaddr_un own, peer = {0};
    socklen_t size = sizeof peer;
    int before = errno, ours = 0;
    if (directory() && fd >= 0 && !getpeername(fd, (struct sockaddr *)&peer, &size) && peer.sun_family == AF_UNIX)
        ours = server_address(&own) && !strncmp(own.sun_path, peer.sun_path, sizeof own.sun_path);
    errno = before;
    return ours;
}

static int real_close(int fd) {
    int before = errno;
    long status = syscall(SYS_close, fd);
    errno = before;
    return (int)status;
}

static int real_poll(struct pollfd *fds, nfds_t count, int timeout) {
    REAL(poll);
    return real(fds, count, timeout);
}

// A memory file that holds the bytes, or -1.
static int memory_file(const void *data, size_t size) {
    int fd = memfd_create("ironband", MFD_CLOEXEC);
    for (size_t done = 0; fd >= 0 && done < size;) {
        ssize_t n = pwrite(fd, (const char *)data + done, size - done, done);
        if (n < 0 && errno != EINTR) {
            real_close(fd);
            return -1;
        }
        if (n > 0) done += n;
    }
    return fd;
}

// Send a request to the server; the end at which its reply arrives, or -1.
static int ask(int device, struct request request, const void *data, size_t size) {
    int ends[2], memory = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) return -1;
    if (size > MOST_INLINE) {
        memory = memory_file(data, size);
        if (memory < 0) {
            real_close(ends[0]);
            real_close(ends[1]);
            return -1;
        }
        size = 0;
    }
    int passed[2] = {ends[1], memory}, count = memory < 0 ? 1 : 2;
    union { char bytes[CMSG_SPACE(sizeof passed)]; struct cmsghdr aligned; } control = {{0}};
    struct iovec parts[2] = {{&request, sizeof request}, {(void *)data, size}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(count * sizeof *passed)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof *passed);
    memcpy(CMSG_DATA(header), passed, count * sizeof *passed);
    ssize_t sent;
    while ((sent = sendmsg(device, &message, MSG_NOSIGNAL)) < 0) {
        struct pollfd room = {device, POLLOUT, 0};
        if (errno == EAGAIN) real_poll(&room, 1, -1);
        else if (errno != EINTR) break;
    }
    real_close(ends[1]);
    if (memory >= 0) real_close(memory);
    if (sent >= 0) return ends[0];
    real_close(ends[0]);
    errno = ENODEV;
    return -1;
}

// What comes back beside a result: bytes, of which there is room for so many, and then are; a descriptor or -1.
struct back { void *data; size_t size; int descriptor; };

// Ask, and wait for the reply. Returns its result, or -1 with errno.
static int call(int device, struct request request, const void *data, size_t size, struct back *back) {
    struct reply reply = {ENODEV, 0};
    size_t room = back->size;
    // Nothing has come back yet, and of a server that is gone nothing will.
    back->size = 0;
    back->descriptor = -1;
    int end = ask(device, request, data, size);
    if (end < 0) return -1;
    union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr aligned; } control;
    struct iovec parts[2] = {{&reply, sizeof reply}, {back->data, room}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got;
    do got = recvmsg(end, &message, MSG_CMSG_CLOEXEC); while (got < 0 && errno == EINTR);
    real_close(end);
    struct cmsghdr *header = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS) memcpy(&back->descriptor, CMSG_DATA(header), sizeof(int));
    if (got < (ssize_t)sizeof reply) reply.error = ENODEV;
    if (!reply.error) back->size = got - sizeof reply;
    if (!reply.error) return reply.result;
    errno = reply.error;
    return -1;
}

// Opening devices, and the files of sysfs.

// By DeviceKind of protocol.py: names, and the kernel's minor numbers of those with number 0; then comes rdma_cm.
static const char *const KINDS[] = {"umad%d%n", "issm%d%n", "uverbs%d%n"};
static const int FIRST_MINORS[] = {0, 64, 192, 0};

// The number of the device that PATH is, and its kind, or -1.
static int device_of(const char *path, int *kind) {
    static const char folder[] = "/dev/infiniband/";
    if (!directory() || !path || strncmp(path, folder, sizeof folder - 1)) return -1;
    path += sizeof folder - 1;
    for (*kind = 0; *kind < (int)(sizeof KINDS / sizeof *KINDS); ++*kind) {
        int number, end = 0;
        if (sscanf(path, KINDS[*kind], &number, &end) == 1 && end && !path[end]) return number;
    }
    return strcmp(path, "rdma_cm") ? -1 : 0;
}

static int open_device(int number, int kind, int flags) {
    struct sockaddr_un address;
    socklen_t size = server_address(&address);
    const char *host = getenv("IRONBAND_HOST");
    struct request request = {OPEN, VERSION << 16 | !!(flags & O_NONBLOCK) << 8 | kind, number};
    int fd = size ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, size)) {
        if (!size) errno = ENAMETOOLONG;
        tell(size ? address.sun_path : directory());
        if (fd >= 0) real_close(fd);
        errno = ENODEV;
        return -1;
    }
    if (!host) host = "";
    if (call(fd, request, host, strlen(host), &(struct back){0}) < 0) {
        real_close(fd);
        return -1;
    }
    if (flags & O_NONBLOCK) fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
    if (!(flags & O_CLOEXEC)) fcntl(fd, F_SETFD, 0);
    return fd;
}

#define MODE(flags)                                                               \
    mode_t mode = 0;                                                              \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {                                      \
        va_list rest;                                                             \
        va_start(rest, flags);                                                    \
        mode = va_arg(rest, mode_t);                                              \
        va_end(rest);                                                             \
    }

#define OPENED(real_call)                                                         \
    char buffer[PATH_MAX];                                                        \
    int kind, number = device_of(path, &kind);                                    \
    if (number >= 0) return open_device(number, kind, flags);                     \
    path = stand_in(path, buffer);                                                \
    return real_call;

int open(const char *path, int flags, ...) { MODE(flags) REAL(open); OPENED(real(path, flags, mode)) }
int open64(const char *path, int flags, ...) { MODE(flags) REAL(open64); OPENED(real(path, flags, mode)) }
int openat(int at, const char *path, int flags, ...) { MODE(flags) REAL(openat); OPENED(real(at, path, flags, mode)) }
int openat64(int at, const char *path, int flags, ...) { MODE(flags) REAL(openat64); OPENED(real(at, path, flags, mode)) }
int __open_2(const char *path, int flags) { return open(path, flags); }
int __open64_2(const char *path, int flags) { return open64(path, flags); }
int __openat_2(int at, const char *path, int flags) { return openat(at, path, flags); }
int __openat64_2(int at, const char *path, int flags) { return openat64(at, path, flags); }

#define REDIRECTED(type, name, parameters, arguments)                             \
    type name parameters {                                                        \
        REAL(name);                                                               \
        char buffer[PATH_MAX];                                                    \
        path = stand_in(path, buffer);                                            \
        return real arguments;                                                    \
    }

#define FILTER int (*filter)(const struct dirent *), int (*order)(const struct dirent **, const struct dirent **)
#define FILTER64 int (*filter)(const struct dirent64 *), int (*order)(const struct dirent64 **, const struct dirent64 **)
REDIRECTED(FILE *, fopen, (const char *path, const char *mode), (path, mode))
REDIRECTED(FILE *, fopen64, (const char *path, const char *mode), (path, mode))
REDIRECTED(DIR *, opendir, (const char *path), (path))
REDIRECTED(int, scandir, (const char *path, struct dirent ***list, FILTER), (path, list, filter, order))
REDIRECTED(int, scandir64, (const char *path, struct dirent64 ***list, FILTER64), (path, list, filter, order))
REDIRECTED(int, access, (const char *path, int how), (path, how))
REDIRECTED(int, eaccess, (const char *path, int how), (path, how))
REDIRECTED(int, faccessat, (int at, const char *path, int how, int flags), (at, path, how, flags))
REDIRECTED(int, chdir, (const char *path), (path))
REDIRECTED(ssize_t, readlink, (const char *path, char *into, size_t size), (path, into, size))

// A device is a character device.
#define AS_DEVICE(into, kind, number) \
    ((into)->st_mode = S_IFCHR | 0666, (into)->st_rdev = makedev(MAJOR, FIRST_MINORS[kind] + (number)), 0)

#define DESCRIBED(name, parameters, arguments)                                    \
    int name parameters {                                                         \
        REAL(name);                                                               \
        char buffer[PATH_MAX];                                                    \
        int kind, number = device_of(path, &kind);                                \
        path = stand_in(path, buffer);                                            \
        int status = real arguments;                                              \
        return status || number < 0 ? status : AS_DEVICE(into, kind, number);     \
    }
DESCRIBED(stat, (const char *path, struct stat *into), (path, into))
DESCRIBED(stat64, (const char *path, struct stat64 *into), (path, into))
DESCRIBED(lstat, (const char *path, struct stat *into), (path, into))
DESCRIBED(lstat64, (const char *path, struct stat64 *into), (path, into))
DESCRIBED(fstatat, (int at, const char *path, struct stat *into, int flags), (at, path, into, flags))
DESCRIBED(fstatat64, (int at, const char *path, struct stat64 *into, int flags), (at, path, into, flags))

int statx(int at, const char *path, int flags, unsigned mask, struct statx *into) {
    REAL(statx);
    char buffer[PATH_MAX];
    int kind, number = device_of(path, &kind);
    path = stand_in(path, buffer);
    int status = real(at, path, flags, mask, into);
    if (status || number < 0) return status;
    into->stx_mode = S_IFCHR | 0666;
    into->stx_rdev_major = MAJOR;
    into->stx_rdev_minor = FIRST_MINORS[kind] + number;
    return 0;
}

// What libraries would rather ask than sysfs, on a machine whose kernel has it.
int socket(int domain, int type, int protocol) {
    REAL(socket);
    if (directory() && domain == AF_NETLINK && protocol == NETLINK_RDMA) {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    return real(domain, type, protocol);
}

// Interfaces: the ports' IP addresses, as the server plans them, come before those of the machine.

enum { MOST_INTERFACES = 256 };
struct interface { struct ifaddrs list; char name[16]; struct sockaddr_in address, mask; };
static char is_ours;  // ifa_data points here

int getifaddrs(struct ifaddrs **list) {
    REAL(getifaddrs);
    int status = real(list);
    FILE *file = status || !directory() ? NULL : fopen("/sys/class/infiniband_addresses", "re");
    if (!file) return status;
    struct interface *all = calloc(MOST_INTERFACES, sizeof *all);
    char address[16], mask[16];
    int count = 0;
    while (all && count < MOST_INTERFACES && fscanf(file, "%15s %15s %15s", all[count].name, address, mask) == 3) {
        struct interface *one = &all[count++];
        one->address.sin_family = one->mask.sin_family = AF_INET;
        inet_pton(AF_INET, address, &one->address.sin_addr);
        inet_pton(AF_INET, mask, &one->mask.sin_addr);
        one->list = (struct ifaddrs){&one[1].list, one->name, IFF_UP | IFF_RUNNING, (struct sockaddr *)&one->address,
                                     (struct sockaddr *)&one->mask, {NULL}, &is_ours};
    }
    fclose(file);
    if (!count) {
        free(all);
        return 0;
    }
    all[count - 1].list.ifa_next = *list;
    *list = &all->list;
    return 0;
}

void freeifaddrs(struct ifaddrs *list) {
    REAL(freeifaddrs);
    struct ifaddrs *first = list, *last = NULL;
    for (; list && list->ifa_data == &is_ours; list = list->ifa_next) last = list;
    if (last) free(first);
    real(list);
}

// Using devices.

// The server reaches the program's memory as a debugger would, which some systems allow to nobody unless told.
// What is allowed holds for one process and not for its children.
static void permit(void) {
    if (directory()) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    if (!is_device(fd)) return real(fd, data, size);
    char answer[MOST_ANSWER];
    struct back back = {answer, sizeof answer, -1};
    struct request request = {WRITE, !!(fcntl(fd, F_GETFL) & O_NONBLOCK), size};
    int result = call(fd, request, data, size, &back);
    struct arrival arrival;
    struct put put;
    for (size_t at = 0; at + sizeof put <= back.size; at += sizeof put + put.length) {
        memcpy(&put, answer + at, sizeof put);
        void *to = (void *)(uintptr_t)put.address;
        if (put.kind == DESCRIPTOR) memcpy(to, &back.descriptor, sizeof(int));
        else if (put.kind == TAKEN) recv(fd, &arrival, sizeof arrival, MSG_DONTWAIT);
        else memcpy(to, answer + at + sizeof put, put.length);
    }
    return result;
}

static long real_syscall(long number, const long *given) {
    REAL(syscall);
    return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

// Map what the server has for a device. GIVEN are mmap()'s parameters.
static void *map_device(const long *given) {
    struct back back = {0};
    uint64_t size = given[1];
    if (call(given[4], (struct request){MAP, 0, given[5]}, &size, sizeof size, &back) < 0) return MAP_FAILED;
    long mapped = real_syscall(SYS_mmap, (long[6]){given[0], size, given[2], given[3], back.descriptor, given[5]});
    real_close(back.descriptor);
    return (void *)mapped;
}

#define MAPPED(name)                                                              \
    void *name(void *at, size_t size, int protection, int flags, int fd, off_t offset) { \
        REAL(name);                                                               \
        if (flags & MAP_ANONYMOUS || !is_device(fd)) return real(at, size, protection, flags, fd, offset); \
        return map_device((long[6]){(long)at, size, protection, flags, fd, offset}); \
    }
MAPPED(mmap)
MAPPED(mmap64)

// Libraries that watch mappings (UCX's) write over mmap() itself, and map by this.
long syscall(long number, ...) {
    long given[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++) given[i] = va_arg(rest, long);
    va_end(rest);
    int is_mapped = number == SYS_mmap && !(given[3] & MAP_ANONYMOUS) && is_device(given[4]);
    return is_mapped ? (long)map_device(given) : real_syscall(number, given);
}

#define DESCRIBED_OPEN(name, type)                                                \
    int name(int fd, struct type *into) {                                         \
        REAL(name);                                                               \
        int status = real(fd, into);                                              \
        if (status || !S_ISSOCK(into->st_mode) || !is_device(fd)) return status;  \
        int which = call(fd, (struct request){WHICH, 0, 0}, NULL, 0, &(struct back){0}); \
        return which < 0 ? -1 : AS_DEVICE(into, which >> 16, which & 0xffff);     \
    }
DESCRIBED_OPEN(fstat, stat)
DESCRIBED_OPEN(fstat64, stat64)

int ioctl(int fd, unsigned long what, ...) {
    REAL(ioctl);
    va_list rest;
    va_start(rest, what);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    int is_of_files = what == FIONBIO || what == FIOCLEX || what == FIONCLEX;
    if (is_of_files || !is_device(fd)) return real(fd, what, argument);
    size_t size = _IOC_SIZE(what), in = _IOC_DIR(what) & _IOC_WRITE ? size : 0, out = _IOC_DIR(what) & _IOC_READ ? size : 0;
    return call(fd, (struct request){IOCTL, 0, what}, argument, in, &(struct back){out ? argument : NULL, out, -1});
}

// What has arrived first, or, with PEEK, what it would be; it is put at DATA as far as there is room.
static ssize_t receive(int fd, struct arrival *arrival, void *data, size_t size, int flags) {
    union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr aligned; } control;
    struct iovec parts[2] = {{arrival, sizeof *arrival}, {data, size}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got = recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno != ECONNRESET) return -1;
    if (got < (ssize_t)sizeof *arrival) {
        // The server is gone, perhaps with something unread. Some programs ask again and again, and write each time
        // that to a log: slowly, then.
        nanosleep(&(struct timespec){0, 200000000}, NULL);
        errno = EIO;
        return -1;
    }
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS) {
        int memory;
        memcpy(&memory, CMSG_DATA(header), sizeof memory);
        size_t wanted = arrival->total < size ? arrival->total : size;
        for (size_t done = 0; done < wanted;) {
            ssize_t n = pread(memory, (char *)data + done, wanted - done, done);
            if (n <= 0) break;
            done += n;
        }
        real_close(memory);
    }
    return got;
}

// Between the look at what has arrived and its taking no other thread takes it, nor is a process forked.
static pthread_mutex_t taking = PTHREAD_MUTEX_INITIALIZER;

static void begin_taking(void) { pthread_mutex_lock(&taking); }

static void end_taking(void) { pthread_mutex_unlock(&taking); }

static void begin_child(void) {
    end_taking();
    permit();
}

__attribute__((constructor)) static void prepare(void) {
    permit();
    pthread_atfork(begin_taking, end_taking, begin_child);
}

static ssize_t take(int fd, void *data, size_t size) {
    struct arrival arrival;
    if (receive(fd, &arrival, data, size, MSG_PEEK | MSG_DONTWAIT) < 0) return -1;
    if (size < arrival.least) {
        errno = EINVAL;
        return -1;
    }
    if (size < arrival.total) {
        errno = ENOSPC;  // It stays, and its header has said how much room it needs.
        return -1;
    }
    if (receive(fd, &arrival, data, size, MSG_DONTWAIT) < 0) return -1;
    return arrival.total;
}

ssize_t read(int fd, void *data, size_t size) {
    REAL(read);
    if (!is_device(fd)) return real(fd, data, size);
    for (;;) {
        begin_taking();
        ssize_t got = take(fd, data, size);
        int why = errno;
        end_taking();
        errno = why;
        if (got >= 0 || why != EAGAIN || fcntl(fd, F_GETFL) & O_NONBLOCK) return got;
        struct arrival arrival;
        if (recv(fd, &arrival, sizeof arrival, MSG_PEEK) < 0 && errno != ECONNRESET) return -1;
    }
}

ssize_t __read_chk(int fd, void *data, size_t size, size_t room) {
    if (size > room) abort();
    return read(fd, data, size);
}

// Waiting. The time is the server's: a slow simulation does not make a program give up.

static uint64_t nanoseconds(const struct timespec *time) {
    return (uint64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

// Whether the time is over, of which the reply says so; without one the server is gone, which the device will say.
static int has_expired(int end) {
    struct reply reply;
    return recv(end, &reply, sizeof reply, MSG_DONTWAIT) > 0;
}

// Wait as ppoll() does, by the time of DEVICE's server.
static int wait_at(int device, struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    REAL(ppoll);
    struct timespec none = {0, 0};
    int ready = real(fds, count, &none, mask);
    if (ready) return ready;
    struct pollfd *all = malloc((count + 1) * sizeof *all);
    if (!all) return -1;
    int end = ask(device, (struct request){WAIT, (uint32_t)syscall(SYS_gettid), nanoseconds(timeout)}, NULL, 0);
    if (end < 0) {
        free(all);
        return real(fds, count, timeout, mask);
    }
    memcpy(all, fds, count * sizeof *all);
    all[count] = (struct pollfd){end, POLLIN, 0};
    ready = real(all, count + 1, NULL, mask);
    int expired = ready > 0 && all[count].revents;
    if (ready == expired && expired && !has_expired(end)) {
        all[count].fd = -1;
        ready = real(all, count + 1, NULL, mask);
        expired = 0;
    }
    real_close(end);
    for (nfds_t i = 0; i < count; i++) fds[i].revents = ready < 0 ? 0 : all[i].revents;
    free(all);
    return ready < 0 ? ready : ready - expired;
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    REAL(ppoll);
    for (nfds_t i = 0; timeout && nanoseconds(timeout) && i < count; i++)
        if (is_device(fds[i].fd)) return wait_at(fds[i].fd, fds, count, timeout, mask);
    return real(fds, count, timeout, mask);
}

int poll(struct pollfd *fds, nfds_t count, int timeout) {
    struct timespec time = {timeout / 1000, timeout % 1000 * 1000000L};
    return ppoll(fds, count, timeout < 0 ? NULL : &time, NULL);
}

int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room) {
    if (room / sizeof *fds < count) abort();
    return poll(fds, count, timeout);
}

int pselect(int count, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout, const sigset_t *mask) {
    REAL(pselect);
    int device = -1;
    for (int fd = 0; timeout && nanoseconds(timeout) && in && fd < count && device < 0; fd++)
        if (FD_ISSET(fd, in) && is_device(fd)) device = fd;
    if (device < 0) return real(count, in, out, except, timeout, mask);
    fd_set sets[3];
    FD_ZERO(&sets[0]);
    FD_ZERO(&sets[1]);
    FD_ZERO(&sets[2]);
    if (in) sets[0] = *in;
    if (out) sets[1] = *out;
    if (except) sets[2] = *except;
    int end = ask(device, (struct request){WAIT, (uint32_t)syscall(SYS_gettid), nanoseconds(timeout)}, NULL, 0);
    if (end < 0 || end >= FD_SETSIZE) {
        if (end >= 0) real_close(end);
        return real(count, in, out, except, timeout, mask);
    }
    FD_SET(end, &sets[0]);
    int ready = real(end < count ? count : end + 1, &sets[0], &sets[1], &sets[2], NULL, mask);
    int expired = ready > 0 && FD_ISSET(end, &sets[0]);
    int is_over = !expired || has_expired(end);
    FD_CLR(end, &sets[0]);
    real_close(end);
    if (ready == expired && !is_over) return real(count, in, out, except, NULL, mask);
    if (ready < 0) return ready;
    if (in) *in = sets[0];
    if (out) *out = sets[1];
    if (except) *except = sets[2];
    return ready - expired;
}

int select(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout) {
    struct timespec time = {0, 0};
    if (timeout) time = (struct timespec){timeout->tv_sec, timeout->tv_usec * 1000L};
    return pselect(count, in, out, except, timeout ? &time : NULL, NULL);
}

// A program that polls for completions asks nobody: it takes a lock and looks at its ring. What it polls for may need its
// processor, so now and then it gives way.
int pthread_spin_lock(pthread_spinlock_t *lock) {
    REAL(pthread_spin_lock);
    static __thread unsigned count;
    enum { OFTEN = 16 };
    if (++count % OFTEN == 0 && directory()) sched_yield();
    return real(lock);
}

// A device in an epoll set, of which the kernel tells; -1 if there is none.
static int device_in(int set) {
    char name[64], line[256];
    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", set);
    int device = -1, fd;
    FILE *info = directory() ? fopen(name, "re") : NULL;
    while (info && device < 0 && fgets(line, sizeof line, info))
        if (sscanf(line, "tfd: %d", &fd) == 1 && is_device(fd)) device = fd;
    if (info) fclose(info);
    return device;
}

// A set can be waited for as anything in it.
static int wait_in(int device, int set, struct epoll_event *events, int most, const struct timespec *timeout,
                   const sigset_t *mask) {
    REAL(epoll_pwait);
    struct pollfd whole = {set, POLLIN, 0};
    int ready;
    do {
        ready = wait_at(device, &whole, 1, timeout, mask);
        if (ready > 0) ready = real(set, events, most, 0, NULL);
    } while (!ready && whole.revents);
    return ready;
}

int epoll_pwait(int set, struct epoll_event *events, int most, int timeout, const sigset_t *mask) {
    REAL(epoll_pwait);
    struct timespec time = {timeout / 1000, timeout % 1000 * 1000000L};
    int device = timeout > 0 ? device_in(set) : -1;
    return device < 0 ? real(set, events, most, timeout, mask) : wait_in(device, set, events, most, &time, mask);
}

int epoll_wait(int set, struct epoll_event *events, int most, int timeout) {
    return epoll_pwait(set, events, most, timeout, NULL);
}

int epoll_pwait2(int set, struct epoll_event *events, int most, const struct timespec *timeout, const sigset_t *mask) {
    REAL(epoll_pwait2);
    int device = timeout && nanoseconds(timeout) ? device_in(set) : -1;
    return device < 0 ? real(set, events, most, timeout, mask) : wait_in(device, set, events, most, timeout, mask);
}
