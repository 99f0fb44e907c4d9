#include "comm/world.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <pthread.h>

#include "boot/boot.hpp"
#include "coll/choice.hpp"
#include "coll/schedule.hpp"
#include "boot/locality.hpp"
#include "heap/heap.hpp"
#include "lane/lane.hpp"
#include "obj/attr.hpp"
#include "comm/session.hpp"
#include "obj/group.hpp"
#include "obj/lanes.hpp"
#include "obj/process.hpp"
#include "obj/settings.hpp"
#include "p2p/combined.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"
#include "p2p/p2p.hpp"
#include "p2p/requestless.hpp"
#include "type/predefined.hpp"

namespace weft::comm {

using obj::Phase;
using obj::Settings;
using obj::ThreadLevel;

namespace {

// ---- what runs below communicators

lane::Limits limits_of(const Settings& s, const boot::Job& job) {
    const bool shared_cpus = job.node_size > job.cpus;
    const lane::Machine machine = lane::know_machine();
    const auto chosen = [](int64_t setting, bool automatic) { return setting == 0 ? automatic : setting == 2; };
    const int64_t eager_max = s.eager_max > s.inline_max ? s.eager_max : s.inline_max;   // what fits a cell is sent eagerly
    int64_t chunk_max = lane::least_fragment;
    for (const int64_t other : {eager_max, s.mapped_min - 1})
        if (other < chunk_max) chunk_max = other;
    return lane::Limits{
        static_cast<int32_t>(s.inline_max), static_cast<int32_t>(eager_max), static_cast<int32_t>(chunk_max), static_cast<int32_t>(s.fragment),
        static_cast<int32_t>(s.block), s.credit,
        shared_cpus, shared_cpus ? 1u : static_cast<uint32_t>(job.cpus / job.node_size), static_cast<uint32_t>(job.cpus),
        shared_cpus ? 1u : static_cast<uint32_t>(s.spin_polls), static_cast<uint64_t>(s.sleep_ms) * 1'000'000, 50'000,
        s.cma != 0, s.mapped_min, s.mapped_both, static_cast<uint32_t>(s.mapped_block), chosen(s.large, machine.split_cma),
        chosen(s.claim, machine.claims_lines), s.counters != 0, os::last_cache_bytes() / 4 * 3};
}

// Numbers of WEFT_WIRE's words.
enum WireChoice : int64_t { wire_shm, wire_null, wire_sock, wire_mixed };

// Which wires are used, and how many consecutive ranks share memory.
struct Reach {
    bool by_shm, by_sock;
    int together;
};

Reach reach_of(const Settings& s, const boot::Job& job) {
    if (job.node_size == 1) return {false, false, 1};
    const bool by_shm = s.wire != wire_sock && job.memfd >= 0, by_sock = s.wire == wire_mixed || !by_shm;
    if (!by_sock || s.node_ranks >= job.node_size) return {by_shm, by_sock, job.node_size};
    return {by_shm, by_sock, s.node_ranks > 0 ? static_cast<int>(s.node_ranks) : 1};
}

Err make_peers(Process& p, const Reach& reach) {
    p.peers = static_cast<lane::Peer*>(calloc(static_cast<size_t>(p.world_size), sizeof(lane::Peer)));
    p.nodes = 1;
    if (p.peers == nullptr) return fail(Err::no_mem, "no memory for a table of %d processes", p.world_size);
    for (int32_t r = 0; r < p.world_size; ++r) {
        lane::Peer& peer = p.peers[r];
        const bool near = reach.by_shm && r / reach.together == p.world_rank / reach.together;
        peer.world_rank = r;
        peer.node = boot::node_of(p.job, r);
        peer.wire = near ? lane::Peer::shm : reach.by_sock ? lane::Peer::sock : lane::Peer::null;
        peer.index = near ? r % reach.together : r;
        if (peer.node >= p.nodes) p.nodes = peer.node + 1;
    }
    return Err::ok;
}

// How many lanes each rank may have, as far as memory goes: the same for all of them. Lanes that nobody uses take addresses alone, except
// in a bounded file.
int lanes_in(const boot::Job& job) { return job.bounded ? 1 : lane::most_lanes; }

// How many this rank has: those that its messages may need, as several threads send and receive at once.
int lanes_here(const Process& p, const Settings& s) {
    const bool one = !p.threads || lanes_in(*p.job) == 1 || s.guard != 0;   // the guard of buffers is one for all
    return one ? 1 : s.lanes == 0 || s.lanes > lane::most_lanes ? lane::most_lanes : static_cast<int>(s.lanes);
}

// Memory that the ranks of a machine share by a wire: `part` for those that reach each other by it, and as much again for each lane.
struct Parts {
    size_t part, stride;
    Parts(const boot::Job& job, int together)
        : part(wire::shm::Layout{together}.bytes()), stride(part * static_cast<size_t>((job.node_size - 1) / together + 1)) {}
};

// Maps the memory that the ranks of this machine share. Those that reach each other by it have a part of their own; `*base`: where it is.
Err map_segment(Process& p, int together, char** base) {
    const boot::Job& job = *p.job;
    if (job.node_size > wire::shm::max_ranks) return fail(Err::other, "%d ranks on one node; %d is the most", job.node_size, wire::shm::max_ranks);
    p.segment = static_cast<heap::Segment*>(malloc(sizeof(heap::Segment)));
    if (p.segment == nullptr) return fail(Err::no_mem, "no memory for the segment");
    new (p.segment) heap::Segment();
    const Parts parts(job, together);
    const size_t bytes = parts.stride * static_cast<size_t>(lanes_in(job));
    WEFT_TRY(p.segment->map(job.memfd, job.node_size, job.node_rank, bytes, !WEFT_THREADS_PRESET, job.bounded));
    *base = p.segment->wires + parts.part * static_cast<size_t>(job.node_rank / together);
    os::allow_attach();
    return Err::ok;
}

Err open_wires(Process& p, const Settings& s) {
    const Reach reach = reach_of(s, *p.job);
    WEFT_TRY(make_peers(p, reach));
    char* base = nullptr;
    if (reach.by_shm) WEFT_TRY(map_segment(p, reach.together, &base));
    wire::sock::Key key;
    static_assert(sizeof key == sizeof p.job->key);
    memcpy(&key, p.job->key, sizeof key);
    const bool can_fence = base != nullptr && os::register_fence();
    WEFT_TRY(p.lane->open(p.peers, p.world_size, p.world_rank, base, can_fence, reach.by_sock ? &key : nullptr));
    obj::open_lanes(p, lanes_here(p, s), base, base != nullptr ? Parts(*p.job, reach.together).stride : 0, can_fence);
    return Err::ok;
}

Err open_lane(Process& p, const Settings& s) {
    lane::Lane* const root = lane::renew(p.lane, 0);
    if (root == nullptr) return fail(Err::no_mem, "no memory for a lane");
    p.lane = root;
    lane::Lane& l = *root;
    l.limits = limits_of(s, *p.job);
    l.threads = p.threads;
    if (s.wire == wire_null && p.job->size == 1) {
        WEFT_TRY(l.open_null());
        p.world_size = static_cast<int32_t>(s.null_size);
        p.null_wire = l.null;
    }
    return open_wires(p, s);
}

Err open_comms(Process& p) {
    p.contexts.open(p.world_rank, p.world_size);
    obj::Group* world = nullptr;
    obj::Group* self = nullptr;
    WEFT_TRY(obj::make_run(p, 0, p.world_size, nullptr, &world));
    WEFT_TRY(obj::make_run(p, p.world_rank, 1, nullptr, &self));
    WEFT_TRY(obj::init_comm(p, p.world, world, nullptr, p.contexts.reserved(0, obj::Contexts::of_world), nullptr));
    WEFT_TRY(obj::init_comm(p, p.self, self, nullptr, p.contexts.reserved(p.world_rank, obj::Contexts::of_self), nullptr));
    p.world.counted = p.self.counted = 0;
    for (Comm* c = p.self.all_next; c != nullptr; c = c->all_next) c->kind = Kind::dead;
    p.world.id = number::comm_world;
    p.self.id = number::comm_self;
    __builtin_strcpy(p.world.name, "MPI_COMM_WORLD");
    __builtin_strcpy(p.self.name, "MPI_COMM_SELF");
    return Err::ok;
}

// In a forked child the rings are gone: every communicator says so instead of touching them.
void in_forked_child() {
    Process& p = *obj::process;
    if (p.phase.load(std::memory_order_relaxed) != Phase::active) return;
    p.phase.store(Phase::forked, std::memory_order_relaxed);
    p.world.kind = p.self.kind = Kind::forked;
    auto mark = [](Comm& c) {
        if (c.kind == Kind::comm) c.kind = Kind::forked;
    };
    for (Comm* c = p.self.all_next; c != nullptr; c = c->all_next) mark(*c);
    p.comm_slabs.each(mark);
}

void close_memory(Process& p) {
    if (p.lane != nullptr) {
        obj::close_lanes(p);
        p.lane->close();
        p.lane->owned.close();
    }
    if (p.heap != nullptr) p.heap->close();
    free(p.peers);
    p.peers = nullptr;
    if (p.segment == nullptr) return;
    p.segment->unmap();
    free(p.segment);
    p.segment = nullptr;
}

Err start_all(Process& p, ThreadLevel level, boot::Job* job) {
    Settings s;
    WEFT_TRY(read_settings(&s));
    p.job = job;
    p.level = level;
    p.log = static_cast<uint8_t>(s.log);
    p.rma_choice = static_cast<uint8_t>(s.rma);
    p.rma_helper_us = static_cast<uint32_t>(s.rma_helper);
    p.coll_choice = static_cast<uint8_t>(s.coll);
    WEFT_TRY(coll::read_table(p));
    p.part_policy = static_cast<uint8_t>(s.part);
    p.lanes.by_hints = s.lanes > lane::most_lanes;
    p.progress_policy = static_cast<uint8_t>(s.progress);
    p.sent_request.state.store(obj::Request::complete, std::memory_order_relaxed);
    p.threads = level == ThreadLevel::multiple && !WEFT_SINGLE;
    p.main_thread = reinterpret_cast<uint64_t>(pthread_self());
    p.world_rank = job->rank;
    p.world_size = job->size;
    WEFT_TRY(open_lane(p, s));
    if (s.node_ranks > 0) obj::see_nodes(p, static_cast<int32_t>(s.node_ranks));
    if (p.heap == nullptr) p.heap = static_cast<heap::Heap*>(malloc(sizeof(heap::Heap)));
    if (p.heap == nullptr) return fail(Err::no_mem, "no memory for the heap's state");
    new (p.heap) heap::Heap();
    p.heap->open(p.segment);
    p.lane->heap = p.heap;
    // Ranks that are threads share all memory.
    if (p.lane->shm.ranks > 1) p.lane->shm.tell_sharing(WEFT_THREADS_PRESET || p.segment->same_address);
    // With the guard on a sender may not be allowed to touch the memory of a buffer that its receiver owns.
    p.lane->segment = s.mapped != 0 && s.guard == 0 ? p.segment : nullptr;
    p.lane->owned.open(p.heap, p.segment, heap::OwnedPolicy{static_cast<heap::OwnedPolicy::Pool>(s.pool), static_cast<uint32_t>(s.pool_cap), s.guard != 0});
    WEFT_TRY(open_comms(p));
    static std::atomic<bool> registered{false};
    if (!registered.exchange(true)) pthread_atfork(nullptr, nullptr, in_forked_child);
    p.phase.store(Phase::active, std::memory_order_release);
    return Err::ok;
}

// Finds this process's job. It stays attached where what follows fails: so that the next try, or the end of the job, has it.
Err join(Process& p) {
    if (p.job != nullptr && p.phase.load(std::memory_order_relaxed) == Phase::before_init) return Err::ok;
    boot::Job* job = p.job;   // of before, detached: used again
    if (job == nullptr) {
        job = static_cast<boot::Job*>(malloc(sizeof(boot::Job)));
        if (job == nullptr) return fail(Err::no_mem, "no memory to start");
        *job = boot::Job{};
    }
    const Err e = boot::attach(job);
    if (e == Err::ok) p.job = job;
    else if (job != p.job) free(job);
    return e;
}

// ---- the World Model

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

// WEFT_COUNTERS: one line per rank, "name=value" for each counter that is not 0, of all lanes together.
void tell_counters(Process& p) {
    constexpr int rows = sizeof lane::counter_rows / sizeof *lane::counter_rows;
    uint64_t values[rows]{}, sent_inline = 0;
    obj::each_lane(p, [&](const lane::Lane& l) {
        uint64_t own[rows];
        memcpy(own, &l.counters, sizeof own);
        for (int i = 0; i < rows; ++i) values[i] += own[i];
        sent_inline += l.sent_inline();
    });
    char text[1024];
    int n = snprintf(text, sizeof text, "weft: rank %d: %s=%lu", p.world_rank, lane::sent_inline_row.name, static_cast<unsigned long>(sent_inline));
    for (int i = 0; i < rows; ++i)
        if (values[i] != 0)
            n += snprintf(text + n, sizeof text - static_cast<size_t>(n), " %s=%lu", lane::counter_rows[i].name, static_cast<unsigned long>(values[i]));
    os::say("%s", text);
}

// WEFT_LOG: 1, one line per job; 2, one per rank; 3, the settings too.
void tell_start(Process& p) {
    if (p.log == 0 || (p.log == 1 && p.world_rank != 0)) return;
    const lane::Limits& l = p.lane->limits;
    os::say("weft: %s: rank %d of %d, process %d on %s, %s, %d processors, threads %s", WEFT_VERSION, p.world_rank, p.world_size,
            os::process_id(), p.job->host, memory_of(p), p.job->cpus,
            p.threads ? "multiple" : "one at a time");
    if (p.log < 3) return;
    os::say("weft: rank %d: inline %d B, eager %d B, fragment %d B, block %d B, credit %lld B, spin %u polls, CMA %s",
            p.world_rank, l.inline_max, l.eager_max, l.fragment, l.block, static_cast<long long>(l.credit), l.spin_polls,
            l.cma ? "allowed" : "off");
}

}  // namespace

Err start_process(Process& p, ThreadLevel level, boot::Job* job) {
    const Err e = start_all(p, level, job);
    if (e != Err::ok) close_memory(p);
    return e;
}

void stop_process(Process& p) {
    p.phase.store(Phase::finalized, std::memory_order_release);
    for (Comm* c : {&p.world, &p.self}) {
        obj::close_comm(p, *c);
        c->kind = Kind::finalized;
    }
    for (Comm* c = p.self.all_next; c != nullptr; c = c->all_next) {   // the fixed ones, which the program may have kept
        if (c->refs.exchange(0) > 0) obj::close_comm(p, *c);
        c->kind = Kind::finalized;
    }
    // Handles that a program still holds must stay readable, so pools and communicators are kept; the wire is not.
    p.hook_count.store(0, std::memory_order_relaxed);
    p.hook_work.store(0, std::memory_order_relaxed);
    // What they list was never freed, or lies in the heap that goes now.
    free(p.rma);
    free(p.part);
    p.rma = nullptr;
    p.part = nullptr;
    if (p.lane->limits.tell_counters) tell_counters(p);
    close_memory(p);
}

Err begin_use(Process& p, int level) {
    {
        SpinGuard guard(p.pool_lock);
        if (p.users > 0 || p.phase.load(std::memory_order_relaxed) == Phase::active) {
            p.users++;
            return Err::ok;
        }
        if (p.starting) return fail(Err::other, "another thread is just initialising MPI");
        p.starting = true;
    }
    Err e = join(p);
    if (e == Err::ok) e = start_process(p, static_cast<ThreadLevel>(level), p.job);
    SpinGuard guard(p.pool_lock);
    p.starting = false;
    if (e == Err::ok) p.users++;
    return e;
}

bool end_use(Process& p) {
    SpinGuard guard(p.pool_lock);
    return --p.users == 0;
}

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
    for (Comm* c : {&p.world, &p.self}) p2p::close_requestless(p, *c);
    // What this rank has sent must leave it, even what was freed while active; then nobody needs it any more.
    p2p::progress_until(p, [&] { return obj::has_left(p); });
    if (p.lane->null == nullptr) WEFT_TRY(wait_for_all(p));
    p2p::progress_until(p, [&] { return obj::has_left(p); });
    p.world_phase = Phase::finalized;
    if (!end_use(p)) {  // sessions go on; the World Model's communicators are over
        p.world.kind = p.self.kind = Kind::finalized;
        boot::finalized(p.job);
        return Err::ok;
    }
    close_directory(p);
    coll::close(p);
    coll::free_table(p);
    stop_process(p);
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
