#include "rma/element.hpp"

#include <cstring>

namespace weft::rma {

namespace {

using op::Code;
using type::Type;

constexpr size_t widest = 64;   // bytes of the largest element

bool is_integer(type::Elem e) { return e >= type::Elem::i8 && e <= type::Elem::u64; }

// Real and complex numbers, and pairs, have none.
bool has_instruction(const Type& t) { return !t.is_pair() && !(t.elem >= type::Elem::f16 && t.elem <= type::Elem::cf128); }

bool is_aligned(const void* p, int64_t size) { return reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(size) == 0; }

// The size of the atomic instructions for these elements; 0: they are updated under the lock.
int64_t atomic_bytes(const Elements& e) {
    const int64_t size = e.type->size;
    const bool possible = e.type->is(Type::dense) && has_instruction(*e.type) && (size == 1 || size == 2 || size == 4 || size == 8);
    return possible && is_aligned(e.at, size) ? size : 0;
}

// One element that the processor updates by an instruction of its own. Every update is acquire and release: whoever reads a flag that was
// accumulated sees what its writer stored before.
template <class U>
struct Atomic {
    using Word [[gnu::may_alias]] = U;

    static U update(const op::Op& op, const Type& t, Word* at, U operand) {
        U now;
        if ((op.code != Code::sum || is_integer(t.elem)) && fetch_integer<U>(op.code, reinterpret_cast<char*>(at), &operand, &now)) return now;
        now = __atomic_load_n(at, __ATOMIC_RELAXED);
        for (;;) {
            U next = now;
            (void)op::apply(op, &operand, &next, 1, t);   // whether it is defined was asked before
            if (__atomic_compare_exchange_n(at, &now, next, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return now;
        }
    }

    static void all(const op::Op& op, const Elements& e, const char* operands, char* before) {
        auto* at = reinterpret_cast<Word*>(e.at);
        for (int64_t i = 0; i < e.count; i++) {
            U operand{};
            if (operands != nullptr) memcpy(&operand, operands + i * static_cast<int64_t>(sizeof(U)), sizeof(U));
            const U old = update(op, *e.type, at + i, operand);
            if (before != nullptr) memcpy(before + i * static_cast<int64_t>(sizeof(U)), &old, sizeof(U));
        }
    }
};

// One element under the lock. It is worked on in aligned copies; holes are not written.
void update_copy(const op::Op& op, const Type& t, char* at, const char* operand, char* before) {
    alignas(widest) char mine[widest], theirs[widest], packed[widest];
    const type::Buffer place{at, 1, &t}, copy{theirs, 1, &t};
    type::pack(place, 0, t.size, packed);
    if (before != nullptr) memcpy(before, packed, static_cast<size_t>(t.size));
    if (op.code == Code::no_op) return;
    if (op.code == Code::replace) {
        type::unpack(place, 0, t.size, operand);
        return;
    }
    memset(mine, 0, sizeof mine);
    memset(theirs, 0, sizeof theirs);
    type::unpack({mine, 1, &t}, 0, t.size, operand);
    type::unpack(copy, 0, t.size, packed);
    (void)op::apply(op, mine, theirs, 1, t);
    type::pack(copy, 0, t.size, packed);
    type::unpack(place, 0, t.size, packed);
}

// Several under the lock, in place: those without holes where they are aligned.
void update_row(const op::Op& op, const Type& t, char* at, int64_t count, const char* operands, char* before) {
    const auto bytes = static_cast<size_t>(count * t.size);
    if (before != nullptr) memcpy(before, at, bytes);
    if (op.code == Code::replace) memcpy(at, operands, bytes);
    else if (op.code != Code::no_op) (void)op::apply(op, operands, at, count, t);
}

const char* at_or_null(const char* p, int64_t offset) { return p != nullptr ? p + offset : nullptr; }
char* at_or_null(char* p, int64_t offset) { return p != nullptr ? p + offset : nullptr; }

// The lock is given back now and then, so that nobody waits for the whole of a large accumulate.
void update_locked(const op::Op& op, const Elements& e, const char* operands, char* before, os::SpinLock& wide) {
    const Type& t = *e.type;
    const bool rows = t.is(Type::dense) && is_aligned(e.at, t.size) && is_aligned(operands, t.size);
    const int64_t batch = rows ? 4096 : 32;
    for (int64_t i = 0; i < e.count;) {
        const int64_t n = e.count - i < batch ? e.count - i : batch;
        SpinGuard guard(wide);
        if (rows) update_row(op, t, e.at + i * t.size, n, at_or_null(operands, i * t.size), at_or_null(before, i * t.size));
        for (int64_t k = i; !rows && k < i + n; k++)
            update_copy(op, t, e.at + k * t.extent, at_or_null(operands, k * t.size), at_or_null(before, k * t.size));
        i += n;
    }
}

}  // namespace

void accumulate(const op::Op& op, const Elements& e, const char* operands, char* before, os::SpinLock& wide) {
    switch (atomic_bytes(e)) {
    case 1: return Atomic<uint8_t>::all(op, e, operands, before);
    case 2: return Atomic<uint16_t>::all(op, e, operands, before);
    case 4: return Atomic<uint32_t>::all(op, e, operands, before);
    case 8: return Atomic<uint64_t>::all(op, e, operands, before);
    default: return update_locked(op, e, operands, before, wide);
    }
}

void compare_and_swap(const Elements& one, const char* expected, const char* desired, char* before, os::SpinLock& wide) {
    switch (atomic_bytes(one)) {
    case 1: return swap_integer<uint8_t>(one.at, expected, desired, before);
    case 2: return swap_integer<uint16_t>(one.at, expected, desired, before);
    case 4: return swap_integer<uint32_t>(one.at, expected, desired, before);
    case 8: return swap_integer<uint64_t>(one.at, expected, desired, before);
    default: break;
    }
    SpinGuard guard(wide);
    const auto bytes = static_cast<size_t>(one.type->size);
    memcpy(before, one.at, bytes);
    if (memcmp(before, expected, bytes) == 0) memcpy(one.at, desired, bytes);
}

}  // namespace weft::rma
