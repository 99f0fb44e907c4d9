// Put, get and the accumulates: what all check, then by loads and stores or by messages.
#include <cstring>

#include "obj/addresses.hpp"
#include "obj/handles.hpp"
#include "rma/kernel.hpp"
#include "rma/messages.hpp"
#include "type/elements.hpp"

namespace weft::rma {

Err check_target(const Window& w, int rank) {
    if (WEFT_LIKELY(static_cast<uint32_t>(rank) < static_cast<uint32_t>(w.size())) || rank == obj::proc_null) return Err::ok;
    return fail(Err::rank, "target rank %d does not exist, the window has %d processes", rank, w.size());
}

namespace {

// The elements that a call means at its target.
struct Target {
    int rank;
    MPI_Aint disp;
    int64_t count;
    const Type& type;
    bool virtual_address = false;   // what `disp` is, instead of a displacement
};

WEFT_COLD Err out_of_range(const Window& w, const Target& t) {
    return fail(err_range, "%lld elements at %s %lld are not in the %lld bytes that rank %d has in the window", static_cast<long long>(t.count),
                t.virtual_address ? "address" : "displacement", static_cast<long long>(t.disp), static_cast<long long>(w.parts[t.rank].bytes), t.rank);
}

// Their offset from the base of the target's part. Err::ok also for MPI_PROC_NULL, where nothing is to be done.
Err locate(const Window& w, const Target& t, int64_t* offset) {
    WEFT_TRY(check_target(w, t.rank));
    if (WEFT_UNLIKELY(w.open_epochs.load(std::memory_order_relaxed) == 0))
        return fail(err_sync, "no epoch of access is open: MPI_Win_fence, MPI_Win_start, MPI_Win_lock or MPI_Win_lock_all comes first");
    if (t.rank == obj::proc_null) return Err::ok;
    if (WEFT_UNLIKELY(t.disp < 0)) return fail(err_disp, "displacement %lld is negative", static_cast<long long>(t.disp));
    const Part& part = w.parts[t.rank];
    int64_t first, last = 0;
    if (t.virtual_address) *offset = t.disp - reinterpret_cast<intptr_t>(part.base);
    else if (__builtin_mul_overflow(t.disp, part.disp_unit, offset)) return out_of_range(w, t);
    if (w.flavor == MPI_WIN_FLAVOR_DYNAMIC || t.count == 0 || t.type.size == 0) return Err::ok;   // the target checks it
    if (__builtin_mul_overflow(t.count - 1, t.type.extent, &last) || __builtin_add_overflow(*offset, t.type.true_lb, &first) ||
        __builtin_add_overflow(first, last, &last))
        return out_of_range(w, t);
    const int64_t low = first < last ? first : last, high = first < last ? last : first;
    return WEFT_LIKELY(low >= 0 && high <= part.bytes - t.type.true_extent) ? Err::ok : out_of_range(w, t);
}

Err same_bytes(int64_t origin, const Target& t) {
    if (WEFT_LIKELY(origin == t.count * t.type.size)) return Err::ok;
    return fail(Err::arg, "the origin's datatype and count mean %lld bytes, the target's %lld", static_cast<long long>(origin),
                static_cast<long long>(t.count * t.type.size));
}

// Whether every element at the target can be updated by the operation.
Err check_op(const op::Op& op, const Target& t) {
    if (!op.is(op::Op::predefined)) return fail(Err::op, "only predefined operations can be applied to a window");
    Err e = Err::ok;
    type::each_run(t.type, t.count > 0 ? 1 : 0, [&](const type::ElementRun& run) { return (e = op::check(op, *run.type)) == Err::ok; });
    return e;
}

Buffer place(const Window& w, const Target& t, int64_t offset) { return {address(w.parts[t.rank], offset), t.count, &t.type}; }

// The packed form of a user's buffer, for the length of a scope: the buffer itself where it is packed already.
class Packed {
public:
    enum class Use : uint8_t { read, write };
    Packed(const Buffer& b, Use use) : buffer_(b), use_(use) {
        if (b.type == nullptr || b.bytes() == 0) return;
        if (b.dense()) data_ = b.data();
        else if ((data_ = own_ = static_cast<char*>(malloc(static_cast<size_t>(b.bytes())))) != nullptr && use == Use::read)
            type::pack(b, 0, b.bytes(), own_);
    }
    ~Packed() {
        if (own_ != nullptr && use_ == Use::write) type::unpack(buffer_, 0, buffer_.bytes(), own_);
        free(own_);
    }
    Packed(const Packed&) = delete;
    Packed& operator=(const Packed&) = delete;
    bool good() const { return buffer_.type == nullptr || buffer_.bytes() == 0 || data_ != nullptr; }
    char* at(int64_t offset) const { return data_ != nullptr ? data_ + offset : nullptr; }

private:
    Buffer buffer_;
    Use use_;
    char *own_ = nullptr, *data_ = nullptr;
};

// The kernel's copy takes three times as long as a small message does to a target that is inside MPI (docs/experiments/021-created-windows.md). So it is for
// epochs of locks, whose target may stay outside, and elsewhere for what takes as long by messages.
constexpr int64_t least_by_kernel = 64 * 1024;
bool is_passive(const Window& w, int target) { return w.all_locked || w.locks[target] != Held::no; }

// By the kernel: `*done` false where messages have to.
Err try_kernel(Process& p, Window& w, Way way, Buffer origin, Buffer there, int target, bool* done) {
    const Packed here(origin, way == Way::put ? Packed::Use::read : Packed::Use::write);
    return here.good() ? copy_by_kernel(p, w, way, here.at(0), there, target, done) : Err::ok;
}

// A put or a get.
Err copy(Process& p, PacketKind kind, Buffer origin, const Target& t, Window& w, Request** out) {
    int64_t offset = 0;
    WEFT_TRY(locate(w, t, &offset));
    if (t.rank == obj::proc_null) return Err::ok;
    WEFT_TRY(same_bytes(origin.bytes(), t));
    const bool puts = kind == PacketKind::put;
    const Buffer there = place(w, t, offset);
    const bool by_kernel = w.by_kernel.load(std::memory_order_relaxed);
    if (w.mapped || (by_kernel && is_here(w, t.rank))) {
        type::copy(puts ? origin : there, puts ? there : origin, origin.bytes());
        return Err::ok;
    }
    if (by_kernel && (is_passive(w, t.rank) || origin.bytes() >= least_by_kernel)) {
        bool done = false;
        WEFT_TRY(try_kernel(p, w, puts ? Way::put : Way::get, origin, there, t.rank, &done));
        if (done) return Err::ok;
    }
    const Buffer none{nullptr, 0, nullptr};
    return send_order(p, w, {kind, nullptr, puts ? origin : none, puts ? none : origin, t.rank, offset, {nullptr, t.count, &t.type}}, out);
}

Err update_mapped(const op::Op& op, Buffer origin, Buffer result, const Target& t, int64_t offset, Window& w) {
    const Packed in(origin, Packed::Use::read), out(result, Packed::Use::write);
    if (!in.good() || !out.good()) return fail(Err::no_mem, "no memory for an accumulate of %lld bytes", static_cast<long long>(origin.bytes()));
    int64_t at = 0;
    type::each_run(t.type, t.count, [&](const type::ElementRun& run) {
        const Elements e{address(w.parts[t.rank], offset + run.offset), run.count, run.type};
        accumulate(op, e, in.at(at), out.at(at), w.parts[t.rank].control->wide);
        at += run.count * run.type->size;
        return true;
    });
    return Err::ok;
}

// An accumulate; of those that want no result, `result` has no type.
Err update(Process& p, const op::Op& op, Buffer origin, Buffer result, const Target& t, Window& w, Request** out) {
    int64_t offset = 0;
    WEFT_TRY(locate(w, t, &offset));
    WEFT_TRY(check_op(op, t));
    if (t.rank == obj::proc_null) return Err::ok;
    if (op.code == op::Code::no_op) origin.type = nullptr;   // which is not read
    else WEFT_TRY(same_bytes(origin.bytes(), t));
    if (result.type != nullptr) WEFT_TRY(same_bytes(result.bytes(), t));
    if (w.mapped) return update_mapped(op, origin, result, t, offset, w);
    return send_order(p, w, {PacketKind::accumulate, &op, origin, result, t.rank, offset, {nullptr, t.count, &t.type}}, out);
}

// The request of an access: the shared one of what completes at once, unless there is one already.
Err with_request(Process& p, Err e, Request** out) {
    if (e == Err::ok && *out == nullptr) *out = &p.sent_request;
    return e;
}

constexpr Buffer no_result{nullptr, 0, nullptr};

Err check_values(const Type& t, const void* a, const void* b, const void* c) {
    if (!t.is(Type::predefined)) return fail(Err::type, "the datatype is not a predefined one");
    for (const void* v : {a, b, c})
        if (obj::no_data_at(v)) return fail(Err::buffer, "%s is no place for an element", obj::special_name(v));
    return Err::ok;
}

bool is_comparable(const Type& t) {
    using type::Elem;
    return !t.is_pair() && ((t.elem >= Elem::i8 && t.elem <= Elem::i128) || (t.elem >= Elem::boolean && t.elem <= Elem::wide));
}

}  // namespace

Err put(Process& p, Buffer origin, int target, MPI_Aint disp, int64_t count, const Type& t, Win& w) {
    return copy(p, PacketKind::put, origin, {target, disp, count, t}, window_of(w), nullptr);
}
Err put_virtual(Process& p, Buffer origin, int target, MPI_Aint at, int64_t count, const Type& t, Win& w) {
    return copy(p, PacketKind::put, origin, {target, at, count, t, true}, window_of(w), nullptr);
}
Err get(Process& p, Buffer origin, int target, MPI_Aint disp, int64_t count, const Type& t, Win& w) {
    return copy(p, PacketKind::get, origin, {target, disp, count, t}, window_of(w), nullptr);
}
Err rput(Process& p, Buffer origin, int target, MPI_Aint disp, int64_t count, const Type& t, Win& w, Request** out) {
    return with_request(p, copy(p, PacketKind::put, origin, {target, disp, count, t}, window_of(w), out), out);
}
Err rget(Process& p, Buffer origin, int target, MPI_Aint disp, int64_t count, const Type& t, Win& w, Request** out) {
    return with_request(p, copy(p, PacketKind::get, origin, {target, disp, count, t}, window_of(w), out), out);
}

Err accumulate(Process& p, Buffer origin, int target, MPI_Aint disp, int64_t count, const Type& t, const op::Op& op, Win& w) {
    return update(p, op, origin, no_result, {target, disp, count, t}, window_of(w), nullptr);
}
Err raccumulate(Process& p, Buffer origin, int target, MPI_Aint disp, int64_t count, const Type& t, const op::Op& op, Win& w, Request** out) {
    return with_request(p, update(p, op, origin, no_result, {target, disp, count, t}, window_of(w), out), out);
}
Err get_accumulate(Process& p, Buffer origin, Buffer result, int target, MPI_Aint disp, int64_t count, const Type& t, const op::Op& op, Win& w) {
    return update(p, op, origin, result, {target, disp, count, t}, window_of(w), nullptr);
}
Err rget_accumulate(Process& p, Buffer origin, Buffer result, int target, MPI_Aint disp, int64_t count, const Type& t, const op::Op& op, Win& w,
                    Request** out) {
    return with_request(p, update(p, op, origin, result, {target, disp, count, t}, window_of(w), out), out);
}

Err fetch_and_op(Process& p, void* origin, void* result, const Type& t, int target, MPI_Aint disp, const op::Op& op, Win& w) {
    WEFT_TRY(check_values(t, op.code == op::Code::no_op ? result : origin, result, result));
    return update(p, op, {origin, 1, &t}, {result, 1, &t}, {target, disp, 1, t}, window_of(w), nullptr);
}

Err compare_and_swap(Process& p, void* origin, void* compare, void* result, const Type& t, int target, MPI_Aint disp, Win& win) {
    Window& w = window_of(win);
    int64_t offset = 0;
    WEFT_TRY(check_values(t, origin, compare, result));
    if (!is_comparable(t)) return fail(Err::type, "the datatype is neither an integer, nor a logical, nor a byte");
    WEFT_TRY(locate(w, {target, disp, 1, t}, &offset));
    if (target == obj::proc_null) return Err::ok;
    if (w.mapped) {
        const Part& part = w.parts[target];
        compare_and_swap({address(part, offset), 1, &t}, static_cast<const char*>(compare), static_cast<const char*>(origin),
                         static_cast<char*>(result), part.control->wide);
        return Err::ok;
    }
    alignas(16) char values[32];
    memcpy(values, compare, static_cast<size_t>(t.size));
    memcpy(values + t.size, origin, static_cast<size_t>(t.size));
    return send_order(p, w, {PacketKind::compare_and_swap, nullptr, {values, 2, &t}, {result, 1, &t}, target, offset, {nullptr, 1, &t}}, nullptr);
}

}  // namespace weft::rma
