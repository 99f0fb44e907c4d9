// Partitioned collectives: a tree of partitioned messages between ranks. A partition of a broadcast goes from parent to children as soon
// as it has arrived; one of a reduction to all is combined with those of the children as soon as all are there, goes to the parent, and
// the result comes back as a broadcast does. Whoever is inside MPI moves what can move. See channel.hpp for who may call what.
//
// Invariant: a partition's stage only grows while the collective is active, and by the exchange to `moving` one thread moves a partition
// at a time; different ones move at once. `busy` guards the list of parts that are over, and the end.
#include <cstdlib>

#include "coll/coll.hpp"
#include "coll/tree.hpp"
#include "obj/status.hpp"
#include "op/op.hpp"
#include "os/clock.hpp"
#include "part/part.hpp"

namespace weft::part {

// A partition waits for MPI_Pready; is marked, and waits for the children; waits for the parent; is over here.
enum class Stage : uint8_t { idle, ready, reduced, moving, over };

struct Collective {
    Process* process;
    Request* request;                  // null once freed
    Buffer each;                       // one partition, of the result
    const char* send;                  // reductions: the first of this rank's own partitions
    const op::Op* op;                  // null: a broadcast
    int32_t partitions, children, links, cursor;  // all partitions before the cursor are over
    bool root;                         // has no parent
    static constexpr int most_children = 31;
    Request* link[2 * most_children + 2];          // all partitioned messages
    Channel *from_parent, *to_parent, *to_child[most_children], *from_child[most_children];
    Buffer came[most_children];        // what the children send
    void* memory[most_children];       // likewise, as it was allocated
    std::atomic<Stage>* stages;
    std::atomic<uint8_t> busy;         // whoever holds it may drive the collective
    std::atomic<bool> active;
    std::atomic<uint32_t> users;       // threads in MPI_Pready, for which the end waits
    std::atomic<Err> error;            // the first of this epoch
    Collective* next;                  // in the engine's list of active ones
};

namespace {

// Matched in the order of the init calls, as all partitioned messages are; users' tags are not negative.
constexpr int32_t up_tag = -2, down_tag = -3;

Channel& channel_of(Request& r) { return *static_cast<Channel*>(r.ext); }
Collective& collective_of(Request& r) { return *static_cast<Collective*>(r.ext); }

bool takes_part(const Collective& c) { return c.op != nullptr || c.root; }

void note(Collective& c, Err e) {
    Err none = Err::ok;
    if (e != Err::ok) c.error.compare_exchange_strong(none, e, std::memory_order_relaxed);
}

Buffer partition_of(const Buffer& first, int32_t i) {
    return {static_cast<char*>(first.base) + first.count * first.type->extent * i, first.count, first.type};
}

// ---------------------------------------------------------------------------------------------- one partition

bool claim(Collective& c, int32_t i, Stage from) {
    return c.stages[i].compare_exchange_strong(from, Stage::moving, std::memory_order_acquire);
}

// Once a message is complete, its sender may mark the same partitions anew.
bool is_there(Channel& c, int32_t i) { return c.request->done() || has_arrived(c, i); }

bool children_have_sent(Collective& c, int32_t i) {
    if (c.op == nullptr) return true;
    for (int32_t k = 0; k < c.children; k++)
        if (!is_there(*c.from_child[k], i)) return false;
    return true;
}

void send_down(Collective& c, int32_t i) {
    for (int32_t k = 0; k < c.children; k++) note(c, mark(*c.to_child[k], i));
}

// This rank's part, and what its children have sent, in the order of ranks: each child holds those after the ones before it. The sum ends
// in the last child's buffer.
void combine(Collective& c, int32_t i) {
    Buffer sum = partition_of({const_cast<char*>(c.send), c.each.count, c.each.type}, i);
    for (int32_t k = 0; k < c.children; k++) {
        const Buffer more = partition_of(c.came[k], i);
        note(c, op::apply(*c.op, sum.base, more.base, more.count, *more.type));
        sum = more;
    }
    const Buffer result = partition_of(c.each, i);
    if (c.root && sum.base != result.base) type::copy(sum, result, sum.bytes());
}

// Moves a partition on to its next stage, if it can. Any thread. True if it moved; then that store was the last touch, as another thread
// may take the partition further, and complete the request.
bool move(Collective& c, int32_t i) {
    const Stage stage = c.stages[i].load(std::memory_order_acquire);  // pairs with mark_of_collective() and the stores below
    if (stage == Stage::ready && children_have_sent(c, i) && claim(c, i, Stage::ready)) {
        const Stage next = c.root ? Stage::over : Stage::reduced;
        if (c.op != nullptr) combine(c, i);
        if (c.root) send_down(c, i);
        else note(c, mark(*c.to_parent, i));
        c.stages[i].store(next, std::memory_order_release);
        return true;
    }
    if (stage == Stage::reduced && is_there(*c.from_parent, i) && claim(c, i, Stage::reduced)) {
        send_down(c, i);
        c.stages[i].store(Stage::over, std::memory_order_release);
        return true;
    }
    return false;
}

// ---------------------------------------------------------------------------------------------------- driving

void remove(Engine& e, Collective& c) {
    SpinGuard guard(e.lock);
    Collective** at = &e.collectives;
    while (*at != &c) at = &(*at)->next;
    __atomic_store_n(at, c.next, __ATOMIC_RELAXED);  // drive_all() asks without the lock
    p2p::end_work(*c.process);
}

void destroy(Collective& c) {
    Process& p = *c.process;
    for (int32_t k = 0; k < c.links; k++) p2p::free_request(p, *c.link[k]);
    for (void* memory : c.memory) free(memory);
    if (c.op != nullptr) op::release(*c.op);
    type::release(*c.each.type);
    p.lane->unguarded.fetch_sub(1, std::memory_order_relaxed);
    free(c.stages);
    free(&c);
}

// With `busy`, which ends here.
void end(Collective& c) {
    Process& p = *c.process;
    // Each has marked its partition, which another thread has moved, and goes: pairs with mark_of_collective().
    while (c.users.load(std::memory_order_acquire) != 0) os::yield_cpu();
    remove(*p.part, c);
    for (int32_t k = 0; k < c.links; k++) note(c, p2p::finish(p, *c.link[k], nullptr));
    c.active.store(false, std::memory_order_relaxed);
    if (c.request == nullptr) return destroy(c);
    p2p::complete_special(p, *c.request, c.error.load(std::memory_order_relaxed));
    c.busy.store(0, std::memory_order_release);  // before that nobody can free it
}

bool try_busy(Collective& c) {
    return c.busy.load(std::memory_order_relaxed) == 0 && c.busy.exchange(1, std::memory_order_acquire) == 0;
}

// With `busy`, which ends here.
bool drive(Collective& c) {
    bool moved = false, done = true;
    for (int32_t i = c.cursor; i < c.partitions; i++) moved |= move(c, i);
    while (c.cursor < c.partitions && c.stages[c.cursor].load(std::memory_order_acquire) == Stage::over) ++c.cursor;
    for (int32_t k = 0; k < c.links; k++) done &= c.link[k]->ops->poll(*c.link[k]);
    if (done && c.cursor == c.partitions) {
        end(c);
        return true;
    }
    c.busy.store(0, std::memory_order_release);
    return moved;
}

thread_local bool driving = false;  // progress made inside must not nest

bool drive_all(Process& p) {
    Engine& e = *p.part;
    if (driving || __atomic_load_n(&e.collectives, __ATOMIC_RELAXED) == nullptr) return false;
    driving = true;
    bool moved = false;
    for (int32_t visit = 0;; visit++) {  // one visit each, found again by counting
        Collective* c;
        bool mine = false;
        {
            SpinGuard guard(e.lock);
            c = e.collectives;
            for (int32_t i = 0; i < visit && c != nullptr; i++) c = c->next;
            if (c != nullptr) mine = try_busy(*c);
        }
        if (c == nullptr) break;
        if (mine) moved |= drive(*c);
    }
    driving = false;
    return moved;
}

// ----------------------------------------------------------------------------------------------- as a request

void take_busy(Collective& c) {
    while (!try_busy(c)) __builtin_ia32_pause();  // another thread's round of progress; it is short
}

bool poll(Request& r) {
    if (r.done()) return true;
    Collective& c = collective_of(r);
    if (try_busy(c)) {
        if (c.active.load(std::memory_order_relaxed)) drive(c);
        else c.busy.store(0, std::memory_order_release);
    }
    return r.done();
}

Err start(Request& r) {
    Collective& c = collective_of(r);
    Engine& e = *c.process->part;
    take_busy(c);
    c.error.store(Err::ok, std::memory_order_relaxed);
    c.cursor = 0;
    for (int32_t i = 0; i < c.partitions; i++) c.stages[i].store(takes_part(c) ? Stage::idle : Stage::reduced, std::memory_order_relaxed);
    for (int32_t k = 0; k < c.links; k++) note(c, c.link[k]->ops->start(*c.link[k]));
    r.state.store(Request::pending, std::memory_order_relaxed);
    c.active.store(true, std::memory_order_release);
    {
        SpinGuard guard(e.lock);
        p2p::begin_work(*c.process);
        c.next = e.collectives;
        __atomic_store_n(&e.collectives, &c, __ATOMIC_RELAXED);
    }
    drive(c);
    return Err::ok;
}

Err finish(Request& r, obj::Status& s) {
    s = obj::empty_status;
    return static_cast<Err>(r.error);
}

void free_collective(Request& r) {
    Collective& c = collective_of(r);
    take_busy(c);
    c.request = nullptr;
    if (!c.active.load(std::memory_order_relaxed)) return destroy(c);
    drive(c);  // alone in its communicator it is complete by its own marks, and no progress may come
}

constinit const obj::RequestOps collective_ops{"partitioned collective", start, poll, finish, nullptr, free_collective, true};

// ---------------------------------------------------------------------------------------------------- making

Engine* engine_with_hook(Process& p) {
    Engine* e = engine_of(p);
    if (e != nullptr && !e->drives_collectives.exchange(true, std::memory_order_relaxed)) p2p::register_hook(p, drive_all);
    return e;
}

Err add(Collective& c, Err err, Request* r, Channel** to) {
    if (err != Err::ok) return err;
    c.link[c.links++] = r;
    *to = &channel_of(*r);
    return Err::ok;
}

// What all messages of a collective share.
struct Tie {
    Comm& comm;
    obj::Info* info;
};

Err add_sender(Collective& c, const Tie& t, const Buffer& each, p2p::Envelope e, Channel** to) {
    Request* r = nullptr;
    const Err err = make_sender(*c.process, t.comm, each, c.partitions, e, t.info, &r);
    return add(c, err, r, to);
}

Err add_receiver(Collective& c, const Tie& t, const Buffer& each, p2p::Envelope e, Channel** to) {
    Request* r = nullptr;
    const Err err = make_receiver(*c.process, t.comm, each, c.partitions, e, &r);
    WEFT_TRY(add(c, err, r, to));
    (*to)->awaits_any = true;
    return Err::ok;
}

// Room for all partitions of child number `k`.
Err make_room(Collective& c, int32_t k) {
    const type::Type& t = *c.each.type;
    const int64_t n = c.each.count * c.partitions, walk = n > 0 ? (n - 1) * t.extent : 0;
    const int64_t lowest = t.true_lb + (walk < 0 ? walk : 0), span = t.true_extent + (walk < 0 ? -walk : walk);
    c.memory[k] = malloc(static_cast<size_t>(span) + 1);
    if (c.memory[k] == nullptr) return no_memory();
    c.came[k] = {static_cast<char*>(c.memory[k]) - lowest, c.each.count, c.each.type};
    return Err::ok;
}

Err connect(Collective& c, const Tie& t, int root) {
    const coll::Tree tree{t.comm.rank, root, t.comm.size};
    c.root = tree.me() == 0;
    const int64_t reach = tree.reach();
    for (int64_t below = 1; below < reach && tree.me() + below < tree.size; below *= 2) {
        const int32_t k = c.children++, child = tree.real(tree.me() + below);
        WEFT_TRY(add_sender(c, t, c.each, {child, down_tag}, &c.to_child[k]));
        if (c.op == nullptr) continue;
        WEFT_TRY(make_room(c, k));
        WEFT_TRY(add_receiver(c, t, c.came[k], {child, up_tag}, &c.from_child[k]));
    }
    if (c.root) return Err::ok;
    WEFT_TRY(add_receiver(c, t, c.each, {tree.parent(), down_tag}, &c.from_parent));
    if (c.op == nullptr) return Err::ok;
    const Buffer own = {const_cast<char*>(c.send), c.each.count, c.each.type}, sum = c.children > 0 ? c.came[c.children - 1] : own;
    return add_sender(c, t, sum, {tree.parent(), up_tag}, &c.to_parent);
}

Err make(Process& p, const Tie& t, const Collective& what, int root, Request** out) {
    if (what.partitions < 0) return fail(Err::arg, "%d partitions", what.partitions);
    if (t.comm.is_inter()) return fail(Err::comm, "a partitioned collective needs an intracommunicator");
    Engine* engine = engine_with_hook(p);
    auto* c = static_cast<Collective*>(calloc(1, sizeof(Collective)));
    auto* stages = static_cast<std::atomic<Stage>*>(calloc(static_cast<size_t>(what.partitions) + 1, sizeof(Stage)));
    Request* r = engine != nullptr && c != nullptr && stages != nullptr ? p2p::make_special(p, &t.comm, &collective_ops, c) : nullptr;
    if (r == nullptr) {
        free(stages);
        free(c);
        return no_memory();
    }
    c->process = &p;
    c->request = r;
    c->each = what.each;
    c->send = what.send;
    c->op = what.op;
    c->partitions = what.partitions;
    c->stages = stages;
    type::retain(*c->each.type);
    if (c->op != nullptr) op::retain(*c->op);
    p.lane->unguarded.fetch_add(1, std::memory_order_relaxed);
    r->flags |= Request::persistent;
    r->state.store(Request::inactive, std::memory_order_release);
    const Err err = connect(*c, t, root);
    if (err != Err::ok) p2p::free_request(p, *r);
    else *out = r;
    return err;
}

// Errors are raised on its communicator.
Err check(const Request& r, const Collective& c, int partition) {
    obj::blame(r.comm);
    if (partition >= 0 && partition < c.partitions) return Err::ok;
    return fail(Err::arg, "partition %d of %d", partition, c.partitions);
}

Err check_active(const Request& r) {
    if (r.state.load(std::memory_order_acquire) != Request::inactive) return Err::ok;
    return fail(Err::request, "the partitioned collective has not been started");
}

}  // namespace

Err pbcast_init(Process& p, Comm& comm, Buffer each, int partitions, int root, obj::Info* info, Request** out) {
    if (root < 0 || root >= comm.size) return fail(Err::root, "root %d is not a rank of a communicator of %d", root, comm.size);
    Collective what{};
    what.each = each;
    what.partitions = partitions;
    return make(p, {comm, info}, what, root, out);
}

Err pallreduce_init(Process& p, Comm& comm, const void* send, Buffer each, int partitions, const op::Op& op, obj::Info* info, Request** out) {
    WEFT_TRY(op::check(op, *each.type));
    Collective what{};
    what.each = each;
    what.send = static_cast<const char*>(coll::in_place(send) ? each.base : send);
    what.op = &op;
    what.partitions = partitions;
    return make(p, {comm, info}, what, 0, out);
}

bool is_collective(const Request& r) { return (r.flags & Request::special) != 0 && r.ops == &collective_ops; }

Err mark_of_collective(Request& r, int partition) {
    Collective& c = collective_of(r);
    WEFT_TRY(check(r, c, partition));
    WEFT_TRY(check_active(r));
    if (!takes_part(c)) return fail(Err::request, "only the root of a partitioned broadcast marks partitions ready");
    lane::Lane& lane = *c.process->lane;
    Stage idle = Stage::idle;
    c.users.fetch_add(1, std::memory_order_relaxed);  // before the stage, with which whoever ends the collective sees it
    const bool marked = c.stages[partition].compare_exchange_strong(idle, Stage::ready, std::memory_order_release, std::memory_order_relaxed);
    if (marked) (void)move(c, partition);
    c.users.fetch_sub(1, std::memory_order_release);  // pairs with end(): another thread may complete and free the request from now on
    if (!marked) return fail(Err::arg, "partition %d is marked ready twice", partition);
    lane::wake_sleepers(lane);
    return Err::ok;
}

Err look_at_collective(Request& r, int partition, bool* flag) {
    Collective& c = collective_of(r);
    WEFT_TRY(check(r, c, partition));
    const auto there = [&] {
        if (r.done()) return true;
        (void)move(c, partition);
        return c.stages[partition].load(std::memory_order_acquire) == Stage::over;
    };
    *flag = there();
    if (*flag) return Err::ok;
    p2p::progress_once(*c.process);
    *flag = there();
    return Err::ok;
}

}  // namespace weft::part
