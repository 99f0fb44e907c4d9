#include "p2p/pending.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "boot/boot.hpp"
#include "obj/group.hpp"
#include "os/callers.hpp"
#include "p2p/lanes.hpp"
#include "p2p/match.hpp"

namespace weft::p2p {
namespace {

struct Text {
    char bytes[4096] = {};
    size_t used = 0;
    void add(const char* format, ...) __attribute__((format(printf, 2, 3))) {
        va_list ap;
        va_start(ap, format);
        const int n = vsnprintf(bytes + used, sizeof bytes - used, format, ap);
        va_end(ap);
        used = n < 0 ? used : used + static_cast<size_t>(n) < sizeof bytes ? used + static_cast<size_t>(n) : sizeof bytes - 1;
    }
};

// An operation that is not complete, or a message that nobody has received. Copied under the guard.
struct Operation {
    enum What : uint8_t { receive, send, synchronous_send, message, probe, member, other };
    What what;
    bool collective;
    const char* name;          // of another kind of request
    const obj::Comm* comm;     // of a message: found later by its context
    uint32_t context;
    int32_t rank, tag;
    int64_t bytes;
};

struct Found {
    static constexpr int shown = 12;
    Operation operations[shown];
    int operations_count = 0;
    Operation messages[shown];
    int messages_count = 0;
    void operation(const Operation& o) {
        if (operations_count < shown) operations[operations_count] = o;
        ++operations_count;
    }
    void message(const wire::Header& h, int64_t bytes) {
        if (messages_count < shown)
            messages[messages_count] = {Operation::message, (h.context & 1) != 0, nullptr, nullptr, h.context, h.source, h.tag, bytes};
        ++messages_count;
    }
};

void add_request(Found* found, const Request& r) {
    if (r.done()) return;
    Operation o{};
    o.collective = (r.flags & Request::coll) != 0;
    o.comm = r.comm;
    if (r.flags & Request::special) {
        o.what = Operation::other;
        o.name = r.ops->name;
    } else {
        o.what = r.flags & Request::is_recv ? Operation::receive
                 : r.flags & Request::sync  ? Operation::synchronous_send : Operation::send;
        o.rank = r.rank;
        o.tag = r.tag;
        o.bytes = buffer_of(r).bytes();
    }
    found->operation(o);
}

// Null if that communicator has been freed.
const obj::Comm* comm_of(Process& p, uint32_t context) {
    SpinGuard g(p.pool_lock);
    const obj::Comm* found = nullptr;
    auto look = [&](const obj::Comm& c) {
        if (c.kind == Kind::comm && c.context == obj::Contexts::of_messages(context)) found = &c;
    };
    look(p.world);
    for (const obj::Comm* c = &p.self; c != nullptr; c = c->all_next) look(*c);
    p.comm_slabs.each(look);
    return found;
}

void look(Lane& l, Found* found) {
    LaneGuard g(l);
    auto pooled = [&](void* block) {
        auto* r = static_cast<Request*>(block);
        if (r->kind == Kind::request) add_request(found, *r);
    };
    l.requests.each(pooled);
    l.persistent_pool.each(pooled);
    for (Ring2* n = l.unexpected_all.next; n != &l.unexpected_all; n = n->next) {
        const Unexpected& u = *Unexpected::of_all(n);
        if (u.receive == nullptr) found->message(u.header, u.bytes);
    }
}

void add_comm(Text* text, const obj::Comm* c) {
    if (c == nullptr) text->add("a communicator that is gone");
    else if (c->name[0] != 0) text->add("%.127s", c->name);
    else text->add("a communicator of %d without a name", c->size);
}

void add_peer(Text* text, const Process& p, const Operation& o) {
    if (o.rank < 0) {
        text->add("any rank");
        return;
    }
    text->add("rank %d", o.rank);
    if (o.comm == nullptr || o.comm == &p.world) return;
    const obj::Group* group = o.comm->is_inter() ? o.comm->remote_group : o.comm->group;
    if (group != nullptr && o.rank < group->size && group->at(o.rank) != o.rank) text->add(" (%d in the world)", group->at(o.rank));
}

void add_message(Text* text, const Operation& o, const char* limit) {
    if (o.collective && o.tag == obj::finalize_tag) text->add(", inside MPI_Finalize");
    else if (o.collective) text->add(", inside collective %d", o.tag & obj::collective_number);
    else if (o.tag == obj::any_tag) text->add(", any tag");
    else text->add(", tag %d", o.tag);
    if (o.what != Operation::probe) text->add(", %s%ld bytes", limit, static_cast<long>(o.bytes));
}

void add_operation(Text* text, const Process& p, const Operation& o) {
    static constexpr struct { const char *verb, *toward, *limit; } words[] = {
        {"receive", "from", "up to "}, {"send", "to", ""}, {"synchronous send", "to", ""}, {"message", "from", ""},
        {"probe for a message", "from", ""}, {"wait in a collective", "for", ""}};
    if (o.what == Operation::other) {
        text->add("%s", o.name);
    } else {
        text->add("%s %s ", words[o.what].verb, words[o.what].toward);
        add_peer(text, p, o);
        if (o.what != Operation::member) add_message(text, o, words[o.what].limit);
    }
    if (o.comm != nullptr || o.what == Operation::message) {
        text->add(", ");
        add_comm(text, o.comm);
    }
    text->add("\n");
}

void add_all(Text* text, const Process& p, const char* head, const Operation* list, int count) {
    // A line takes at most about 250 bytes; the number of omitted ones is reported.
    int told = 0;
    for (; told < count && told < Found::shown && text->used + 400 < sizeof text->bytes; ++told) {
        text->add("    %s", head);
        add_operation(text, p, list[told]);
    }
    if (told < count) text->add("    %sand %d more\n", head, count - told);
}

}  // namespace

thread_local constinit const Probing* Probing::now = nullptr;
thread_local constinit const AwaitingMember* AwaitingMember::now = nullptr;

bool tell_if_asked(Process& p, uint64_t waited_ns, const Request* blocking, bool again) {
    if (p.job == nullptr || !boot::asked(p.job)) return false;
    Text text;
    os::Entry entry;
    os::find_entry("MPI", &entry);
    text.add("in %s%s for %.1f s", entry.function[0] != 0 ? entry.function : "MPI", again ? " again and again" : "",
             static_cast<double>(waited_ns) / 1e9);
    if (entry.place[0] != 0) text.add(", called at %s", entry.place);
    text.add("\n");
    Found found;
    if (const Probing* probing = Probing::now)
        found.operation({Operation::probe, probing->collective, nullptr, probing->comm, 0, probing->rank, probing->tag, 0});
    if (const AwaitingMember* awaiting = AwaitingMember::now)
        found.operation({Operation::member, true, nullptr, &awaiting->comm, 0, awaiting->rank, 0, 0});
    // A blocking call's request may live on its stack.
    if (blocking != nullptr) {
        LaneGuard g(lane_of(p, *blocking));
        if (!g.lane.requests.owns(blocking) && !g.lane.persistent_pool.owns(blocking)) add_request(&found, *blocking);
    }
    if (!p.told.exchange(true)) obj::each_lane(p, [&](Lane& l) { look(l, &found); });  // the other threads report only their own calls
    for (int i = 0; i < found.messages_count && i < Found::shown; ++i) found.messages[i].comm = comm_of(p, found.messages[i].context);
    add_all(&text, p, "pending: ", found.operations, found.operations_count);
    add_all(&text, p, "arrived, not received: ", found.messages, found.messages_count);
    boot::answer(p.job, text.bytes);
    return true;
}

}  // namespace weft::p2p
