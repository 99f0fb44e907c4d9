#include "comm/world.hpp"

#include <cstdlib>
#include <pthread.h>

#include "boot/boot.hpp"
#include "coll/schedule.hpp"
#include "heap/segment.hpp"
#include "lane/lane.hpp"
#include "obj/attr.hpp"
#include "comm/session.hpp"
#include "obj/process.hpp"
#include "p2p/combined.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"
#include "p2p/p2p.hpp"
#include "type/predefined.hpp"

namespace weft::comm {

using obj::Phase;
using obj::ThreadLevel;

namespace {

constexpr int levels[] = {0, 1024, 2048, 4096};  // MPI_THREAD_SINGLE ... MPI_THREAD_MULTIPLE

// Every rank has entered once any rank leaves: dissemination, in the collective context of WORLD.
Err wait_for_all(Process& p) {
    const type::Buffer nothing = type::bytes_at(nullptr, 0);
    for (int step = 1; step < p.world.size; step *= 2) {
        const p2p::Envelope to{(p.world.rank + step) % p.world.size, obj::finalize_tag, obj::Request::coll};
        const p2p::Envelope from{(p.world.rank - step + p.world.size) % p.world.size, obj::finalize_tag, obj::Request::coll};
        p2p::Request* r = nullptr;
        WEFT_TRY(p2p::irecv(p, p.world, nothing, from, &r));
        WEFT_TRY(p2p::send(p, p.world, nothing, to, p2p::Mode::standard));
        p2p::wait(p, *r);
        WEFT_TRY(p2p::finish(p, *r, nullptr));
    }
    return Err::ok;
}

const char* memory_of(const Process& p) {
    if (p.segment == nullptr) return p.lane->sock != nullptr ? "no shared segment, sockets" : "no shared segment";
    return p.segment->same_address ? "segment at the common address" : "segment anywhere (its heap is not shared)";
}

// WEFT_LOG: 1, one line per job; 2, one per rank; 3, the settings too.
void tell_start(Process& p) {
    if (p.log == 0 || (p.log == 1 && p.world_rank != 0)) return;
    const lane::Limits& l = p.lane->limits;
    os::say("weft: %s: rank %d of %d, process %d on %s, %s, %d processors, threads %s", WEFT_VERSION, p.world_rank, p.world_size,
            os::process_id(), p.job->host, memory_of(p), p.job->cpus,
            p.threads ? "multiple" : "one at a time");
    if (p.log < 3) return;
    os::say("weft: rank %d: inline %d B, eager %d B, fragment %d B, block %d B, credit %lld B, spin %u polls, attach %s",
            p.world_rank, l.inline_max, l.eager_max, l.fragment, l.block, static_cast<long long>(l.credit), l.spin_polls,
            l.attach ? "allowed" : "off");
}

}  // namespace

Err init_thread(Process& p, int*, char***, int required, int* provided) {
    if (p.world_phase != Phase::before_init || p.phase.load(std::memory_order_acquire) == Phase::forked)
        return fail(Err::other, "MPI is initialised at most once in a process, and this one did so already");
    int level = 0;
    while (level < 3 && levels[level] < required) ++level;
    if (WEFT_SINGLE) level = 0;
    WEFT_TRY(begin_use(p, level));
    p.level = static_cast<ThreadLevel>(level);
    p.world_phase = Phase::active;
    p.world.kind = p.self.kind = Kind::comm;
    p.main_thread = reinterpret_cast<uint64_t>(pthread_self());
    *provided = levels[level];
    tell_start(p);
    return Err::ok;
}

Err init(Process& p, int* argc, char*** argv) {
    int provided;
    return init_thread(p, argc, argv, levels[0], &provided);
}

Err finalize(Process& p) {
    WEFT_TRY(obj::delete_attributes(p, p.self));  // first of all, with MPI still whole
    p2p::close_buffers(p);
    // What this rank has sent must leave it, even what was freed while active; then nobody needs it any more.
    p2p::progress_until(p, [&] { return p.lane->has_left(); });
    if (p.lane->null == nullptr) WEFT_TRY(wait_for_all(p));
    p2p::progress_until(p, [&] { return p.lane->has_left(); });
    p.world_phase = Phase::finalized;
    if (!end_use(p)) {  // sessions go on; the World Model's communicators are over
        p.world.kind = p.self.kind = Kind::finalized;
        boot::finalized(p.job);
        return Err::ok;
    }
    close_directory(p);
    coll::close(p);
    obj::stop_process(p);
    boot::finalized(p.job);
    boot::detach(p.job);
    return Err::ok;
}

Err initialized(Process& p, bool* flag) {
    *flag = p.world_phase != Phase::before_init;
    return Err::ok;
}

Err finalized(Process& p, bool* flag) {
    *flag = p.world_phase == Phase::finalized;
    return Err::ok;
}

Err query_thread(Process& p, int* provided) {
    *provided = levels[static_cast<int>(p.level)];
    return Err::ok;
}

Err is_thread_main(Process& p, bool* flag) {
    *flag = p.main_thread == reinterpret_cast<uint64_t>(pthread_self());
    return Err::ok;
}

Err abort(Process& p, Comm& c, int code) {
    boot::abort(p.job, code, c.name[0] != 0 ? c.name : "MPI_Abort");
}

}  // namespace weft::comm
