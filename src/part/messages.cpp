// Partitions as messages: each message carries as many consecutive partitions as Setup::group says, and leaves when the last of them is
// marked. See channel.hpp for who may call what.
#include <cstdlib>

#include "p2p/progress.hpp"
#include "part/channel.hpp"

namespace weft::part {

using type::bytes_at;

Err make_messages(Channel& c) {
    c.way.store(Way::messages, std::memory_order_release);
    const auto n = static_cast<size_t>(messages_of(c));
    c.requests = static_cast<Request**>(calloc(n + 1, sizeof(Request*)));
    if (c.sending) c.missing = static_cast<std::atomic<int32_t>*>(calloc(n + 1, sizeof(int32_t)));
    else c.own_row = static_cast<char*>(calloc(n + 1, sizeof(uint32_t)));
    return c.requests != nullptr && (c.missing != nullptr || c.own_row != nullptr) ? Err::ok : no_memory();
}

void start_messages(Channel& c) {
    c.done_parts = 0;
    c.marked.store(0, std::memory_order_relaxed);
    for (int32_t i = 0; i < messages_of(c); i++) {
        const int32_t left = c.partitions - i * c.setup.group;
        c.missing[i].store(left < c.setup.group ? left : c.setup.group, std::memory_order_relaxed);
    }
}

Err send_with_others(Channel& c, int32_t partition) {
    const int32_t i = partition / c.setup.group, first = i * c.setup.group;
    const int32_t left = c.partitions - first, n = left < c.setup.group ? left : c.setup.group;
    Err e = Err::ok;
    // Acquire and release: whoever sends has seen the data of all.
    if (c.missing[i].fetch_sub(1, std::memory_order_acq_rel) == 1) {
        Buffer them = c.each;
        them.base = static_cast<char*>(them.base) + int64_t{first} * them.count * them.type->extent;
        them.count *= n;
        e = p2p::isend(*c.process, *c.comm, them, envelope(c.peer, c.setup.first_tag + i), p2p::Mode::standard, &c.requests[i]);
    }
    c.marked.fetch_add(1, std::memory_order_release);  // pairs with put_all()
    return e;
}

// ------------------------------------------------------------------------------------------------- receiver

namespace {

// Where message i lands: in place where it is whole elements, else packed in the spill and unpacked on arrival.
Buffer landing(const Channel& c, int32_t i, bool* spilled) {
    const int64_t size = c.each.type->size, at = part_bytes(c) * i, left = sent_bytes(c) - at;
    const int64_t bytes = part_bytes(c) < left ? part_bytes(c) : left;
    *spilled = false;
    if (size > 0 && at % size == 0 && bytes % size == 0 && at + bytes <= own_bytes(c))
        return {static_cast<char*>(c.each.base) + at / size * c.each.type->extent, bytes / size, c.each.type};
    *spilled = true;
    return bytes_at(c.spill + at, bytes);
}

// Whether a message does not map to whole elements, or to none. All but the last are alike.
bool needs_spill(const Channel& c) {
    bool spilled = false;
    const int32_t last = messages_of(c) - 1;
    if (last >= 0) (void)landing(c, last, &spilled);
    if (!spilled && last > 0) (void)landing(c, last - 1, &spilled);
    return spilled;
}

void unpack_spilled(Channel& c, int32_t i) {
    bool spilled = false;
    const Buffer part = landing(c, i, &spilled);
    if (!spilled || c.spill == nullptr) return;
    const int64_t at = part_bytes(c) * i, room = own_bytes(c) - at, n = part.count < room ? part.count : room;
    if (n > 0) type::unpack(whole(c), at, n, part.base);
}

}  // namespace

void post_messages(Channel& c) {
    c.row = c.own_row;
    c.stride = sizeof(uint32_t);
    c.done_parts = 0;
    const bool alike = c.setup.group == 1 && c.setup.partitions == c.partitions && c.setup.bytes == c.each.bytes() && c.bytes != 0;
    if (c.spill == nullptr && needs_spill(c) && (c.spill = static_cast<char*>(malloc(static_cast<size_t>(sent_bytes(c)) + 1))) == nullptr) {
        note(c, no_memory());
        return;
    }
    if (sent_bytes(c) > own_bytes(c))
        note(c, fail(Err::truncate, "the sender's %d partitions are larger than the receive's %d", c.setup.partitions, c.partitions));
    for (int32_t i = 0; i < messages_of(c); i++) {
        bool spilled = false;
        note(c, p2p::irecv(*c.process, *c.comm, landing(c, i, &spilled), envelope(c.peer, c.setup.first_tag + i), &c.requests[i]));
    }
    c.posted.store(true, std::memory_order_release);  // pairs with parrived()
    c.look_made.store(alike ? static_cast<uint32_t>(c.partitions) : 0, std::memory_order_release);  // likewise
}

bool reap(Channel& c) {
    const int32_t n = messages_of(c);
    for (int32_t i = 0; i < n && c.done_parts < n; i++) {
        Request* r = c.requests[i];
        if (r == nullptr || !r->done()) continue;
        note(c, p2p::finish(*c.process, *r, nullptr));
        c.requests[i] = nullptr;
        c.done_parts++;
        if (c.sending) continue;
        unpack_spilled(c, i);
        mark_at(c.row, c.stride, static_cast<uint32_t>(i)).store(c.mark, std::memory_order_release);  // pairs with is_taken()
    }
    return c.done_parts == n;
}

}  // namespace weft::part
