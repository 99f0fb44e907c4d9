#include "op/op.hpp"

#include <limits.h>
#include <string.h>

#include <utility>

#include "base/pool.hpp"
#include "base/spin.hpp"
#include "op/kernels.hpp"
#include "op/predefined.hpp"
#include "type/predefined.hpp"

namespace weft::op {

namespace {

// Ops outlive any one Process, as types do, so their pool belongs to this floor.
constinit Spin pool_lock;
constinit Pool pool{sizeof(Op), 32};
constinit std::atomic<const Kernels*> chosen{nullptr};

constexpr Op make(int i) {
    if (i == 0) return Op{{Kind::bad_handle, 0, 0}, 0, Code::user, {1}, nullptr};
    if (i == 1) return Op{{Kind::null_handle, 0, null_id}, Op::predefined, Code::user, {1}, nullptr};
    const Row& r = rows[i - 2];
    uint32_t flags = Op::predefined;
    if (r.code != Code::replace && r.code != Code::no_op) flags |= Op::commutative;
    return Op{{Kind::op, 0, r.id}, flags, r.code, {1}, nullptr};
}

template <size_t... I>
constexpr Table make_all(std::index_sequence<I...>) {
    return Table{{make(static_cast<int>(I))...}};
}

const char* text(const type::Type& t) { return t.is(type::Type::named) ? type::name_of(t) : "a derived datatype"; }

bool copies(const Op& op) { return op.code == Code::replace || op.code == Code::no_op; }

Err undefined(const Op& op, const type::Type& t) { return fail(Err::op, "%s is not defined on %s", name_of(op), text(t)); }

// Classic functions take an int: long vectors go in pieces.
void call_user(const Op& op, char* in, char* inout, int64_t count, const type::Type& t) {
    void* handle = type::handle_of(t);
    if (op.is(Op::large)) return reinterpret_cast<UserFunctionLarge>(op.function)(in, inout, &count, &handle);
    auto* f = reinterpret_cast<UserFunction>(op.function);
    while (count > 0) {
        int32_t piece = count < INT_MAX ? static_cast<int32_t>(count) : INT_MAX;
        int64_t bytes = piece * t.extent;
        count -= piece;
        void* h = handle;
        f(in, inout, &piece, &h);
        in += bytes;
        inout += bytes;
    }
}

}  // namespace

constinit uint64_t fortran_false[2] = {0, 0};

void set_fortran_false(const void* pattern, int bytes) {
    unsigned char extended[16];
    memcpy(extended, pattern, static_cast<size_t>(bytes));
    memset(extended + bytes, extended[bytes - 1] & 0x80 ? 0xff : 0, static_cast<size_t>(16 - bytes));
    for (int i = 0; i < 2; i++) {
        uint64_t half;
        memcpy(&half, extended + 8 * i, 8);
        __atomic_store_n(&fortran_false[i], half, __ATOMIC_RELAXED);
    }
}

constinit Table predefined = make_all(std::make_index_sequence<n_predefined>{});

const char* name_of(const Op& op) { return op.is(Op::predefined) && op.kind == Kind::op ? rows[&op - predefined.at - 2].name : ""; }

bool can_run(const Kernels& k) {
    __builtin_cpu_init();
    if (&k == &kernels_avx512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
    return &k == &kernels_v2 || __builtin_cpu_supports("avx2");
}

const Kernels& best_kernels() {
    const Kernels* k = chosen.load(std::memory_order_relaxed);   // constant tables: nothing to acquire
    if (WEFT_LIKELY(k != nullptr)) return *k;
    k = can_run(kernels_avx512) ? &kernels_avx512 : can_run(kernels_avx2) ? &kernels_avx2 : &kernels_v2;
    chosen.store(k, std::memory_order_relaxed);
    return *k;
}

const char* isa_name() { return best_kernels().name; }

Kernel kernel_of(const Op& op, const type::Type& t) {
    if (t.is_pair())
        return op.code == Code::minloc || op.code == Code::maxloc ? pair_kernel(op.code, t.elem, t.index) : nullptr;
    if (op.code >= Code::minloc || t.is(type::Type::unsupported)) return nullptr;
    return best_kernels().at[static_cast<int>(op.code)][static_cast<int>(t.elem)];
}

Err check(const Op& op, const type::Type& t) {
    if (op.code == Code::user) return Err::ok;
    if (t.is(type::Type::unsupported)) return fail(Err::type, "the Fortran compiler lacks %s (see MPI_Abi_set_fortran_info)", text(t));
    if (copies(op)) return t.is(type::Type::predefined) ? Err::ok : undefined(op, t);
    return kernel_of(op, t) ? Err::ok : undefined(op, t);
}

Err apply(const Op& op, const void* in, void* inout, int64_t count, const type::Type& t) {
    if (op.code == Code::user) {
        if (count > 0) call_user(op, static_cast<char*>(const_cast<void*>(in)), static_cast<char*>(inout), count, t);
        return Err::ok;
    }
    if (WEFT_UNLIKELY(copies(op))) {
        WEFT_TRY(check(op, t));
        if (op.code == Code::replace && count > 0) memcpy(inout, in, static_cast<size_t>(count * t.extent));
        return Err::ok;
    }
    Kernel k = kernel_of(op, t);
    if (WEFT_UNLIKELY(!k)) return check(op, t);
    k(in, inout, count);
    return Err::ok;
}

Err create(void* function, bool commutes, bool large, Op** out) {
    if (!function) return fail(Err::arg, "a null function cannot be an operation");
    Op* op;
    {
        SpinGuard guard(pool_lock);
        op = static_cast<Op*>(pool.take());
    }
    if (!op) return fail(Err::no_mem, "no memory for an operation");
    op->id = 0;
    op->flags = (commutes ? uint32_t{Op::commutative} : 0) | (large ? uint32_t{Op::large} : 0);
    op->code = Code::user;
    op->refs.store(1, std::memory_order_relaxed);
    op->function = function;
    op->kind = Kind::op;
    *out = op;
    return Err::ok;
}

void release(const Op& cop) {
    if (cop.is(Op::predefined)) return;
    auto& op = const_cast<Op&>(cop);
    if (op.refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    op.kind = Kind::dead;
    SpinGuard guard(pool_lock);
    pool.give(&op);
}

}  // namespace weft::op
