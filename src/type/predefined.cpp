#include "type/predefined.hpp"

#include <utility>

#include "type/elem.hpp"
#include "type/layout.hpp"

namespace weft::type {

namespace {

// MPI_SHORT_INT, the one named pair with a hole inside.
constexpr Run short_int_runs[] = {{0, 0, 2}, {4, 2, 4}};
constexpr Layout short_int_layout = {
    .root = {.op = Node::runs, .depth = 1, .offset = 0, .bytes = 6, .count = 2, .stride = 0, .block = 0,
             .list = short_int_runs},
    .shape = {.form = Shape::pair}, .contents = {},
    .depth = 1, .elements = 2, .uniform = 0, .inner = nullptr, .memory = nullptr,
};

constexpr uint32_t always = Type::predefined | Type::committed | Type::named;

// One run of bytes that fills the extent; a pair may have padding behind it (then only contiguous) or, where the index
// must be aligned beyond the value, inside.
constexpr uint32_t density(Elem value, Elem index, int size, int extent) {
    if (size == extent) return Type::dense | Type::contiguous;
    bool hole = index != Elem::none && size_of(value) % align_of(index) != 0;
    return hole ? 0 : uint32_t{Type::contiguous};
}

constexpr Type make(int i) {
    if (i == 0) return Type{{Kind::bad_handle, 0, 0}, 0, 1, 0, 0, 0, 0, 0, {1}, Elem::none, Elem::none, 0, nullptr, nullptr};
    if (i == 1)
        return Type{{Kind::null_handle, 0, null_id}, Type::named, 1, 0, 0, 0, 0, 0, {1}, Elem::none, Elem::none, 0, nullptr, nullptr};
    const Row& r = rows[i - 2];
    uint32_t flags = always | density(r.elem, r.index, r.size, r.extent);
    Layout* layout = flags & Type::contiguous ? nullptr : const_cast<Layout*>(&short_int_layout);
    int64_t true_extent = r.index == Elem::none ? r.size : pair_layout(r.elem, r.index).span;
    return Type{{Kind::type, 0, r.id}, flags, r.align, r.size, r.extent, 0, 0, true_extent, {1}, r.elem, r.index, 0, layout, nullptr};
}

template <size_t... I>
constexpr Table make_all(std::index_sequence<I...>) {
    return Table{{make(static_cast<int>(I))...}};
}

}  // namespace

constinit Table predefined = make_all(std::make_index_sequence<n_predefined>{});

const char* name_of(const Type& t) {
    if (t.kind == Kind::null_handle) return "MPI_DATATYPE_NULL";
    const Row* r = row_of(t);
    return r ? r->name : "";
}

namespace {

struct Told {
    int size;          // 0: missing; FortranSizes::untold
    Elem elem, index;
};

constexpr Elem none = Elem::none;

Elem by_size(int size, Elem s1, Elem s2, Elem s4, Elem s8, Elem s16) {
    switch (size) {
    case 1: return s1;
    case 2: return s2;
    case 4: return s4;
    case 8: return s8;
    case 16: return s16;
    default: return none;
    }
}

Elem logical_of(int size) { return by_size(size, Elem::l8, Elem::l16, Elem::l32, Elem::l64, Elem::l128); }
Elem integer_of(int size) { return by_size(size, Elem::i8, Elem::i16, Elem::i32, Elem::i64, Elem::i128); }
Elem real_of(int size) { return by_size(size, none, Elem::f16, Elem::f32, Elem::f64, Elem::f128); }
Elem complex_of(int size) { return by_size(size, none, Elem::cf16, Elem::cf32, Elem::cf64, Elem::cf128); }

void set_supported(Type& t, bool there) {
    const uint32_t others = t.flags & ~uint32_t{Type::unsupported | Type::committed};
    t.flags = others | (there ? Type::committed : Type::unsupported);
}

bool possible(int size, Elem e) { return size == 0 || size == FortranSizes::untold || e != none; }

// Of two parts each.
int twice(int size) { return size > 0 ? 2 * size : size; }

Told told_of(Fortran f, const FortranSizes& s) {
    switch (f) {
    case Fortran::logical: return {s.logical, logical_of(s.logical), none};
    case Fortran::integer: return {s.integer, integer_of(s.integer), none};
    case Fortran::real: return {s.real, real_of(s.real), none};
    case Fortran::double_precision: return {s.double_precision, real_of(s.double_precision), none};
    case Fortran::complex: return {twice(s.real), complex_of(s.real), none};
    case Fortran::double_complex: return {twice(s.double_precision), complex_of(s.double_precision), none};
    case Fortran::two_real: return {twice(s.real), real_of(s.real), real_of(s.real)};
    case Fortran::two_double_precision:
        return {twice(s.double_precision), real_of(s.double_precision), real_of(s.double_precision)};
    case Fortran::two_integer: return {twice(s.integer), integer_of(s.integer), integer_of(s.integer)};
    default: return {0, none, none};
    }
}

}  // namespace

Err set_fortran_sizes(const FortranSizes& s) {
    if (!possible(s.logical, logical_of(s.logical))) return fail(Err::arg, "no LOGICAL has %d bytes", s.logical);
    if (!possible(s.integer, integer_of(s.integer))) return fail(Err::arg, "no INTEGER has %d bytes", s.integer);
    if (!possible(s.real, real_of(s.real))) return fail(Err::arg, "no REAL has %d bytes", s.real);
    if (!possible(s.double_precision, real_of(s.double_precision)))
        return fail(Err::arg, "no DOUBLE PRECISION has %d bytes", s.double_precision);
    for (int i = 0; i < n_rows; i++) {
        const Row& r = rows[i];
        Type& t = predefined[i + 2];
        if (r.fortran == Fortran::no) continue;
        if (r.fortran == Fortran::sized) {
            const int32_t there = s.supported ? s.supported(r, s.arg) : FortranSizes::untold;
            if (there != FortranSizes::untold) set_supported(t, there == 1);
            continue;
        }
        Told told = told_of(r.fortran, s);
        if (told.size == FortranSizes::untold) continue;
        set_supported(t, told.size != 0);
        if (told.size == 0) continue;
        t.elem = told.elem;
        t.index = told.index;
        t.size = t.extent = t.true_extent = told.size;
        t.align = static_cast<uint32_t>(align_of(told.elem));
    }
    return Err::ok;
}

}  // namespace weft::type
