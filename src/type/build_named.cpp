// Types that are predefined but have no handle of their own: Fortran 90's parametrised kinds and the pairs that have no
// name. Made when first asked for, kept for good; plus the search for a named type by class and size.
#include "base/spin.hpp"
#include "type/builder.hpp"
#include "type/elem.hpp"
#include "type/flatten.hpp"
#include "type/predefined.hpp"

namespace weft::type {

namespace {

// Every unnamed predefined type made so far. `list_lock` is held while one is made, so that each is made once; the
// pool's own lock is taken inside it, never the other way round.
struct Unnamed {
    Unnamed* next;
    Type* type;
};
constinit Spin list_lock;
constinit Unnamed* unnamed = nullptr;

const Type* find(Combiner c, int a, int b, const Type* value, const Type* index) {
    for (Unnamed* u = unnamed; u; u = u->next) {
        const Contents& k = u->type->layout->contents;
        if (k.combiner != c) continue;
        bool same = k.n_types == 2 ? k.types[0] == value && k.types[1] == index : true;
        if (k.n_ints > 0) same = same && k.ints[0] == a;
        if (k.n_ints > 1) same = same && k.ints[1] == b;
        if (same) return u->type;
    }
    return nullptr;
}

Err keep(Type* t) {
    auto* u = static_cast<Unnamed*>(layout_memory(*t->layout, sizeof(Unnamed)));
    if (!u) {
        release(*t);
        return fail(Err::no_mem, "no memory for a datatype");
    }
    t->flags |= Type::predefined | Type::committed;
    *u = {unnamed, t};
    unnamed = u;
    return Err::ok;
}

const Type& id(int abi_value) { return *predefined_at(abi_value); }

// The first of these types that has `size` bytes: Fortran's, or C's where the Fortran compiler lacks it.
struct Candidate {
    int16_t fortran, c;
};

const Type* pick(const Candidate* list, int n, int size) {
    for (int i = 0; i < n; i++) {
        for (int16_t number : {list[i].fortran, list[i].c}) {
            const Type& t = id(number);
            if (number && t.size == size && !t.is(Type::unsupported)) return &t;
        }
    }
    return nullptr;
}

constexpr Candidate integers[] = {{0x2c1, 0x240}, {0x2c9, 0x248}, {0x2d1, 0x250}, {0x2d9, 0x258}, {0x2e1, 0}};
constexpr Candidate reals[] = {{0x2ca, 0}, {0x2d2, 0x210}, {0x2da, 0x214}, {0x2e2, 0x220}};
constexpr Candidate complexes[] = {{0x2d3, 0}, {0x2db, 0x212}, {0x2e3, 0x216}, {0x2eb, 0x224}};
constexpr Candidate logicals[] = {{0x2c0, 0x238}, {0x2c8, 0}, {0x2d0, 0}, {0x2d8, 0}, {0x2e0, 0}};

// A type that is `base` in all but its envelope.
Err make_alias(Combiner c, const Type& base, int a, int b, int n_ints, const Type** out) {
    SpinGuard guard(list_lock);
    *out = find(c, a, b, nullptr, nullptr);
    if (*out) return Err::ok;
    Builder builder;
    WEFT_TRY(builder.start(c, Width::classic, 2, 0, 0));
    builder.add_int(a);
    if (n_ints == 2) builder.add_int(b);
    builder.shape() = {Shape::repeat, 0, 1, 1, 0, &base, nullptr};
    Type* t;
    WEFT_TRY(builder.finish(&t));
    t->elem = base.elem;
    WEFT_TRY(keep(t));
    *out = t;
    return Err::ok;
}

// Decimal digits and range of the IEEE formats.
struct Format {
    int precision, range, bytes;
};
constexpr Format formats[] = {{6, 37, 4}, {15, 307, 8}, {33, 4931, 16}};

int real_bytes(int precision, int range) {
    int p = precision == unspecified ? 0 : precision, r = range == unspecified ? 0 : range;
    for (const Format& f : formats)
        if (p <= f.precision && r <= f.range) return f.bytes;
    return 0;
}

Err no_kind(int precision, int range) {
    return fail(Err::arg, "there is no kind of real with precision %d and range %d here", precision, range);
}

Err floating(Combiner c, const Candidate* list, int parts, int precision, int range, const Type** out) {
    if (precision == unspecified && range == unspecified) return fail(Err::arg, "neither precision nor range is given");
    if ((precision < 0 && precision != unspecified) || (range < 0 && range != unspecified)) return no_kind(precision, range);
    int bytes = real_bytes(precision, range);
    const Type* base = bytes ? pick(list, 4, bytes * parts) : nullptr;
    // Without a Fortran REAL16, C's long double stands in as far as it reaches.
    if (base && (base->elem == Elem::f80 || base->elem == Elem::cf80) && precision > 18) base = nullptr;
    return base ? make_alias(c, *base, precision, range, 2, out) : no_kind(precision, range);
}

}  // namespace

Err f90_real(int precision, int range, const Type** out) { return floating(Combiner::f90_real, reals, 1, precision, range, out); }

Err f90_complex(int precision, int range, const Type** out) {
    return floating(Combiner::f90_complex, complexes, 2, precision, range, out);
}

Err f90_integer(int range, const Type** out) {
    constexpr int ranges[] = {2, 4, 9, 18, 38};
    for (int i = 0; i < 5 && range >= 0; i++) {
        if (range > ranges[i]) continue;
        if (const Type* base = pick(integers, 5, 1 << i)) return make_alias(Combiner::f90_integer, *base, range, 0, 1, out);
        break;
    }
    return fail(Err::arg, "there is no kind of integer with range %d here", range);
}

Err match_size(int32_t type_class, int size, const Type** out) {
    const Type* t = nullptr;
    switch (static_cast<TypeClass>(type_class)) {
    case TypeClass::logical: t = pick(logicals, 5, size); break;
    case TypeClass::integer: t = pick(integers, 5, size); break;
    case TypeClass::real: t = pick(reals, 4, size); break;
    case TypeClass::complex: t = pick(complexes, 4, size); break;
    default: return fail(Err::arg, "type class %d is unknown", type_class);
    }
    if (!t) return fail(Err::arg, "no type of this class has %d bytes", size);
    *out = t;
    return Err::ok;
}

namespace {

bool is_integer(Elem e) { return e >= Elem::i8 && e <= Elem::u64; }
bool is_value(Elem e) { return is_integer(e) || e == Elem::f32 || e == Elem::f64 || e == Elem::f80; }

// The named pair of two named types, by ABI numbers.
struct Named {
    int16_t value, index, pair;
};
constexpr Named named_pairs[] = {
    {0x210, 0x209, 0x228}, {0x214, 0x209, 0x229}, {0x20a, 0x209, 0x22a}, {0x209, 0x209, 0x22b}, {0x208, 0x209, 0x22c},
    {0x220, 0x209, 0x22d}, {0x21a, 0x21a, 0x230}, {0x21c, 0x21c, 0x231}, {0x219, 0x219, 0x232},
};

Err make_pair(const Type& value, const Type& index, const Type** out) {
    SpinGuard guard(list_lock);
    *out = find(Combiner::value_index, 0, 0, &value, &index);
    if (*out) return Err::ok;
    PairLayout lay = pair_layout(value.elem, index.elem);
    Builder b;
    WEFT_TRY(b.start(Combiner::value_index, Width::classic, 0, 0, 2));
    WEFT_TRY(b.add_type(value));
    WEFT_TRY(b.add_type(index));
    WEFT_TRY(b.make_blocks(2));
    b.shape().blocks[0] = {0, 1, &value};
    b.shape().blocks[1] = {lay.at, 1, &index};
    Type* t;
    WEFT_TRY(b.finish(&t));
    t->elem = value.elem;
    t->index = index.elem;
    WEFT_TRY(keep(t));
    *out = t;
    return Err::ok;
}

}  // namespace

Err value_index(const Type& value, const Type& index, const Type** out) {
    for (const Type* t : {&value, &index})
        if (t->kind != Kind::type) return fail(Err::type, "a null datatype in a pair");
    const Type* pair = nullptr;
    for (const Named& n : named_pairs)
        if (n.value == value.id && n.index == index.id && value.is(Type::named) && index.is(Type::named)) pair = &id(n.pair);
    if (pair && pair->is(Type::unsupported)) pair = nullptr;
    bool possible = value.is(Type::named) && index.is(Type::named) && is_value(value.elem) && is_integer(index.elem) &&
                    !value.is_pair() && !index.is_pair() && !value.is(Type::unsupported) && !index.is(Type::unsupported);
    if (!pair && possible) WEFT_TRY(make_pair(value, index, &pair));
    *out = pair;
    return Err::ok;
}

}  // namespace weft::type
