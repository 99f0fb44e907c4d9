// What a rank and mpiexec say to each other: fixed messages over a local SOCK_SEQPACKET socket, one host, one build.
// boot/ and cmd/mpiexec include this and nobody else; it holds no lock.
// A rank finds mpiexec by an inherited socket (WEFT_BOOT_FD), or by an abstract name where a parent closed that one.
#pragma once
#include <cstdint>

namespace weft::boot {

// The environment of a rank.
inline constexpr char env_fd[] = "WEFT_BOOT_FD";      // <descriptor>:<inode>; the inode unmasks a reused number
inline constexpr char env_addr[] = "WEFT_BOOT_ADDR";  // abstract name, random
inline constexpr char env_cookie[] = "WEFT_COOKIE";   // 32 hex digits; proves that the name was inherited
inline constexpr char env_rank[] = "WEFT_RANK";
inline constexpr char env_size[] = "WEFT_SIZE";
// MPI_INFO_ENV: key=value&key=value..., with %XX for what would be taken for something else. In the environment, because it
// is the same before MPI_Init.
inline constexpr char env_info[] = "WEFT_INFO";
inline constexpr int info_bytes = 4096;  // at most, decoded: key\0value\0...

// Seconds that another launcher, and rank 0 under it, may take for an answer of their own.
inline constexpr char env_launcher_timeout[] = "WEFT_LAUNCHER_TIMEOUT";

inline constexpr uint32_t protocol_magic = 0x57465435;  // "WFT5"; another number is another version of the protocol
inline constexpr int cookie_bytes = 33;                 // with the closing 0

enum class Say : uint32_t {
    hello = 1,    // rank -> mpiexec; over the inherited socket it carries the far end of the rank's private socket
    welcome,      // mpiexec -> rank: the job; carries the descriptors that it says
    refused,      // mpiexec -> rank: another process is this rank already
    finalized,    // rank -> mpiexec: from here on it may exit as it likes
    abort,        // rank -> mpiexec: end the job
    question,     // mpiexec -> rank: what do you wait for? Never taken from the socket, so that every waiting thread sees it
    answer,       // rank -> mpiexec: one per thread that waits
    other_user,   // mpiexec -> rank: only processes of mpiexec's user may join
    other_job,    // mpiexec -> rank: the rank or the cookie is not one of this job's
};

// Descriptors of a welcome, in this order.
enum Carries : uint32_t {
    segment = 1,   // the node's memory; not in a job of one rank
    localities = 2,    // the Locality of every rank; not where there is no memory for it
    lifeline = 4,  // the first time
};

struct Hello {
    uint32_t magic;
    Say say;
    int32_t rank;
    int32_t pid;
    char cookie[cookie_bytes];
};

struct Welcome {
    uint32_t magic;
    Say say;
    int32_t rank, size;
    int32_t node_rank, node_size;
    int32_t appnum, universe_size;
    int32_t cpus;        // CPUs the whole job may use on this node
    int32_t generation;  // how often this rank attached before
    int32_t app_size;    // ranks of this rank's program
    uint32_t carries;    // Carries
    int32_t bounded;     // the segment is a file in /dev/shm (os/shared_file.hpp)
    uint64_t job_id;     // random, the same in all ranks
    unsigned char key[32];  // likewise, and of this generation alone; nobody else knows it
};

struct Finalized {
    uint32_t magic;
    Say say;
};

struct Question {
    uint32_t magic;
    Say say;
};

struct Denied {
    uint32_t magic;
    Say say;
    uint32_t user;  // mpiexec's
};

struct Answer {
    uint32_t magic;
    Say say;
    char text[4096];  // lines
};

struct Abort {
    uint32_t magic;
    Say say;
    int32_t code;
    uint32_t by_error;  // not by a call of MPI_Abort
    char text[1024];
};

}  // namespace weft::boot
