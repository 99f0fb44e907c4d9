// Boot: who am I, who are my peers. Started by Weft's mpiexec, by another launcher, or alone.
// obj/ and the floors above may include this; nothing here knows messages or MPI objects.
// It holds no lock: attach, finalized and detach are called by the one thread that initialises or finalises.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/err.hpp"

namespace weft::boot {

inline constexpr int key_bytes = 32;

enum class Launcher : uint8_t { none, mpiexec, pmi, pmix };

// Lives as long as the Process; may be attached again after detach.
struct Job {
    int rank = 0, size = 1;
    int node_rank = 0, node_size = 1;  // among the ranks that share this node's memfd
    int appnum = -1;                   // -1: unknown (MPI_APPNUM is then unset)
    int universe_size = 1;
    int app_size = 1;                  // ranks of this program
    int cpus = 1;                      // CPUs that all ranks of this node together may use
    int generation = 0;                // 0 the first time this process attaches
    uint64_t id = 0;                   // random, the same in all ranks; 0 for a singleton
    // Random, the same in all ranks, known to nobody else, new each time that they attach: for sockets between them. 0 for a singleton.
    unsigned char key[key_bytes] = {};
    const struct Locality* localities = nullptr;  // of all ranks, as mpiexec placed them; null where nobody told
    int memfd = -1;                    // the node's segment, empty until a rank sizes it; -1 where the rank is alone
    bool bounded = false;              // the segment is a file in /dev/shm instead (os/shared_file.hpp)
    Launcher launcher = Launcher::none;
    bool singleton = true;
    char host[256] = {};

    // Private to boot/.
    int link = -1;      // to mpiexec or the PMI server
    int lifeline = -1;  // closes when mpiexec dies; stays open after detach
};

// Decides, in this order: Weft's mpiexec, a foreign launcher, alone. On error the text says what to do.
Err attach(Job* job);
// What mpiexec tells for MPI_INFO_ENV, as key\0value\0...; the bytes used. The same before and after attach.
inline constexpr int launch_info_bytes = 4096;
int launch_info(char out[launch_info_bytes]);
// MPI_Finalize is done: this rank may exit with any status and no longer ends the job by it.
void finalized(Job* job);
// Does the launcher ask what this rank waits for (protocol.hpp)? Any thread.
bool asked(const Job* job);
void answer(const Job* job, const char* text);
// Closes what attach opened, the memfd included; the process still dies with mpiexec.
void detach(Job* job);
// Ends the whole job: tells the launcher, then leaves this process by _exit(code).
enum class Cause : uint8_t { call, error };  // of MPI_Abort; of an error handler that ends the job
[[noreturn]] void abort(Job* job, int code, const char* text, Cause cause = Cause::call);

}  // namespace weft::boot
