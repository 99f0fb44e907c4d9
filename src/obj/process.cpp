#include "obj/process.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#include <pthread.h>

#include "boot/boot.hpp"
#include "heap/heap.hpp"
#include "lane/lane.hpp"
#include "obj/group.hpp"
#include "obj/settings.hpp"
#include "os/futex.hpp"
#include "os/memory.hpp"

namespace weft::obj {

Route route_to(Process& p, int32_t world_rank) {
    const int32_t inline_max = p.lane->limits.inline_max;
    if (world_rank == p.world_rank) return Route{Route::self, p.lane->self, -1};
    if (p.lane->null != nullptr) return Route{Route::null_wire, world_rank, inline_max};
    if (!p.lane->on_shm(world_rank)) return Route{Route::sock, world_rank, -1};
    return Route{Route::shm, world_rank, inline_max};
}

namespace {

// The Process that `process` starts at: constant-initialised, so that it is there before any constructor runs.
struct First {
    Process p{};
    constexpr First() { prepare_process(p); }
};
constinit First first_process;

// In a forked child the rings are gone: every communicator says so instead of touching them.
void in_forked_child() {
    Process& p = *process;
    if (p.phase.load(std::memory_order_relaxed) != Phase::active) return;
    p.phase.store(Phase::forked, std::memory_order_relaxed);
    p.world.kind = p.self.kind = Kind::forked;
    for (Comm* c = p.all_comms; c != nullptr; c = c->all_next)
        if (c->kind == Kind::comm) c->kind = Kind::forked;
}

lane::Limits limits_of(const Settings& s, const boot::Job& job) {
    const bool shared_cpus = job.node_size > job.cpus;
    const lane::Machine machine = lane::know_machine();
    const auto chosen = [](int64_t setting, bool automatic) { return setting == 0 ? automatic : setting == 2; };
    return lane::Limits{
        static_cast<int32_t>(s.inline_max), static_cast<int32_t>(s.eager_max), static_cast<int32_t>(s.fragment),
        static_cast<int32_t>(s.block), s.credit,
        shared_cpus, shared_cpus ? 1u : static_cast<uint32_t>(s.spin_polls), static_cast<uint64_t>(s.sleep_ms) * 1'000'000, 50'000,
        s.cma != 0, chosen(s.large, machine.split_cma), chosen(s.claim, machine.claims_lines), os::last_cache_bytes() / 4 * 3};
}

// The lane of an earlier time leaves its pools: handles to what lies there stay readable.
Err make_lane(Process& p) {
    if (p.lane == nullptr) {
        p.lane = static_cast<lane::Lane*>(aligned_alloc(64, (sizeof(lane::Lane) + 63) / 64 * 64));
        if (p.lane == nullptr) return fail(Err::no_mem, "no memory for a lane");
        new (p.lane) lane::Lane();
        return Err::ok;
    }
    const Pool requests = p.lane->requests, persistent = p.lane->persistent_pool, rndv = p.lane->rndv_pool, transfers = p.lane->transfer_pool;
    new (p.lane) lane::Lane();
    p.lane->requests = requests;
    p.lane->persistent_pool = persistent;
    p.lane->rndv_pool = rndv;
    p.lane->transfer_pool = transfers;
    return Err::ok;
}

// Numbers of WEFT_WIRE's words.
enum WireChoice : int64_t { wire_shm, wire_null, wire_sock, wire_mixed };

// Maps the memory that the ranks of this machine share. `*base`: where their wire lies in it.
Err map_segment(Process& p, char** base) {
    if (p.job->node_size > wire::shm::max_ranks)
        return fail(Err::other, "%d ranks on one node; %d is the most", p.job->node_size, wire::shm::max_ranks);
    p.segment = static_cast<heap::Segment*>(malloc(sizeof(heap::Segment)));
    if (p.segment == nullptr) return fail(Err::no_mem, "no memory for the segment");
    new (p.segment) heap::Segment();
    WEFT_TRY(p.segment->map(p.job->memfd, p.job->node_size, p.job->node_rank,
                            wire::shm::Layout{p.job->node_size}.bytes(), !WEFT_THREADS_PRESET, p.job->bounded));
    *base = p.segment->wires;
    os::allow_attach();
    return Err::ok;
}

Err open_wires(Process& p, const Settings& s) {
    const boot::Job& job = *p.job;
    lane::Lane& l = *p.lane;
    const bool alone = job.node_size == 1;
    const bool by_sock = !alone && (s.wire == wire_sock || s.wire == wire_mixed || job.memfd < 0);
    char* base = nullptr;
    if (!alone && s.wire != wire_sock && job.memfd >= 0) WEFT_TRY(map_segment(p, &base));
    wire::sock::Key key;
    static_assert(sizeof key == sizeof job.key);
    memcpy(&key, job.key, sizeof key);
    const bool can_fence = base != nullptr && os::register_fence();
    WEFT_TRY(l.open(base, job.node_size, job.node_rank, can_fence, by_sock ? &key : nullptr));
    const auto node = [&](int rank) { return s.node_ranks > 0 ? rank / s.node_ranks : rank; };
    if (by_sock && base != nullptr)
        for (int peer = 0; peer < job.node_size; ++peer)
            if (node(peer) == node(job.node_rank)) l.share_memory_with(peer);
    return Err::ok;
}

Err open_lane(Process& p, const Settings& s) {
    WEFT_TRY(make_lane(p));
    lane::Lane* const l = p.lane;
    l->limits = limits_of(s, *p.job);
    WEFT_TRY(open_wires(p, s));
    if (s.wire == wire_null && p.job->size == 1) {
        l->null = static_cast<wire::null::Null*>(aligned_alloc(64, sizeof(wire::null::Null)));
        if (l->null == nullptr) return fail(Err::no_mem, "no memory for the null wire");
        l->null->messages = 0;
        p.world_size = static_cast<int32_t>(s.null_size);
    }
    return Err::ok;
}

Err open_comms(Process& p) {
    p.contexts.open(p.world_rank, p.world_size);
    Group* world = nullptr;
    Group* self = nullptr;
    WEFT_TRY(make_run(p, 0, p.world_size, nullptr, &world));
    WEFT_TRY(make_run(p, p.world_rank, 1, nullptr, &self));
    WEFT_TRY(init_comm(p, p.world, world, nullptr, p.contexts.reserved(0, Contexts::of_world), nullptr));
    WEFT_TRY(init_comm(p, p.self, self, nullptr, p.contexts.reserved(p.world_rank, Contexts::of_self), nullptr));
    p.world.counted = p.self.counted = 0;
    p.world.id = number::comm_world;
    p.self.id = number::comm_self;
    __builtin_strcpy(p.world.name, "MPI_COMM_WORLD");
    __builtin_strcpy(p.self.name, "MPI_COMM_SELF");
    return Err::ok;
}

}  // namespace

#if WEFT_THREADS_PRESET
thread_local constinit Process* process = &first_process.p;
#else
constinit Process* process = &first_process.p;
#endif

void see_nodes(Process& p, int32_t ranks_each) {
    p.node_ranks = ranks_each;
    p.nodes = ranks_each > 0 ? (p.world_size - 1) / ranks_each + 1 : 1;
}

static void close_memory(Process& p) {
    if (p.lane != nullptr) p.lane->close();
    if (p.heap != nullptr) p.heap->close();
    if (p.segment == nullptr) return;
    p.segment->unmap();
    free(p.segment);
    p.segment = nullptr;
}

static Err start_all(Process& p, ThreadLevel level, boot::Job* job);

Err start_process(Process& p, ThreadLevel level, boot::Job* job) {
    const Err e = start_all(p, level, job);
    if (e != Err::ok) close_memory(p);
    return e;
}

static Err start_all(Process& p, ThreadLevel level, boot::Job* job) {
    static_assert(sizeof(boot::Job) > 0);
    Settings s;
    WEFT_TRY(read_settings(&s));
    p.job = job;
    p.level = level;
    p.log = static_cast<uint8_t>(s.log);
    p.sent_request.state.store(Request::complete, std::memory_order_relaxed);
    p.threads = level == ThreadLevel::multiple && !WEFT_SINGLE;
    p.main_thread = reinterpret_cast<uint64_t>(pthread_self());
    p.world_rank = job->rank;
    p.world_size = job->size;
    see_nodes(p, static_cast<int32_t>(s.node_ranks));
    WEFT_TRY(open_lane(p, s));
    p.lane->threads = p.threads;
    if (p.heap == nullptr) p.heap = static_cast<heap::Heap*>(malloc(sizeof(heap::Heap)));
    if (p.heap == nullptr) return fail(Err::no_mem, "no memory for the heap's state");
    new (p.heap) heap::Heap();
    p.heap->open(p.segment);
    WEFT_TRY(open_comms(p));
    static std::atomic<bool> registered{false};
    if (!registered.exchange(true)) pthread_atfork(nullptr, nullptr, in_forked_child);
    p.phase.store(Phase::active, std::memory_order_release);
    return Err::ok;
}

void stop_process(Process& p) {
    p.phase.store(Phase::finalized, std::memory_order_release);
    for (Comm* c : {&p.world, &p.self}) {
        close_comm(p, *c);
        c->kind = Kind::finalized;
    }
    // Handles that a program still holds must stay readable, so pools and communicators are kept; the wire is not.
    p.hook_count.store(0, std::memory_order_relaxed);
    p.hook_work.store(0, std::memory_order_relaxed);
    close_memory(p);
}

}  // namespace weft::obj
