#include "type/external.hpp"

#include <string.h>

#include "type/builder.hpp"
#include "type/elem.hpp"
#include "type/predefined.hpp"

namespace weft::type {

namespace {

// How a named type, or the one part of a pair, is written: its elements and their bytes in the portable form.
struct Form {
    Elem elem;
    int external;
};

struct Forms {
    Form value, index;   // index.external is 0 where there is no pair
    int at;              // of the index in memory
};

Forms forms_of(const Type& t) {
    const Row& r = *row_of(t);
    if (!t.is_pair()) return {{t.elem, r.external}, {Elem::none, 0}, 0};
    int index = r.fortran == Fortran::no ? 4 : r.external / 2;
    return {{t.elem, r.external - index}, {t.index, index}, pair_layout(t.elem, t.index).at};
}

using Unsigned = unsigned __int128;

Unsigned get_big(const unsigned char* p, int n) {
    Unsigned v = 0;
    for (int i = 0; i < n; i++) v = v << 8 | p[i];
    return v;
}

void put_big(unsigned char* p, int n, Unsigned v) {
    for (int i = n; i-- > 0; v >>= 8) p[i] = static_cast<unsigned char>(v);
}

Unsigned get_native(const char* p, int n) {
    Unsigned v = 0;
    memcpy(&v, p, static_cast<size_t>(n));
    return v;
}

Unsigned extend(Unsigned v, int bytes) {
    int shift = 128 - 8 * bytes;
    return static_cast<Unsigned>(static_cast<__int128>(v << shift) >> shift);
}

bool is_signed(Elem e) {
    switch (e) {
    case Elem::u8: case Elem::u16: case Elem::u32: case Elem::u64: case Elem::wide: return false;
    default: return true;
    }
}

bool is_real(Elem e) { return e >= Elem::f16 && e <= Elem::f128; }
bool is_complex(Elem e) { return e >= Elem::cf16 && e <= Elem::cf128; }
Elem part_of(Elem e) {
    return static_cast<Elem>(static_cast<int>(e) - static_cast<int>(Elem::cf16) + static_cast<int>(Elem::f16));
}

template <class T>
T load(const char* p) {
    T v;
    memcpy(&v, p, sizeof v);
    return v;
}

template <class T>
Unsigned bits_of(T v) {
    Unsigned u = 0;
    memcpy(&u, &v, sizeof v);
    return u;
}

template <class T>
T from_bits(Unsigned u) {
    T v;
    memcpy(&v, &u, sizeof v);
    return v;
}

// Reals whose portable form has another width go by way of binary128, which holds all of them.
__float128 real_value(Elem e, const char* p) {
    switch (e) {
    case Elem::f32: return load<float>(p);
    case Elem::f64: return load<double>(p);
    case Elem::f80: return load<long double>(p);
    default: return load<__float128>(p);
    }
}

Unsigned real_bits(__float128 v, int bytes) {
    if (bytes == 4) return bits_of(static_cast<float>(v));
    if (bytes == 8) return bits_of(static_cast<double>(v));
    return bits_of(v);
}

void store_real(Elem e, __float128 v, char* p) {
    auto put = [p](auto x) { memcpy(p, &x, sizeof x); };
    switch (e) {
    case Elem::f32: return put(static_cast<float>(v));
    case Elem::f64: return put(static_cast<double>(v));
    case Elem::f80: return put(static_cast<long double>(v));
    default: return put(v);
    }
}

__float128 real_from(Unsigned u, int bytes) {
    if (bytes == 4) return from_bits<float>(u);
    if (bytes == 8) return from_bits<double>(u);
    return from_bits<__float128>(u);
}

bool same_format(Elem e, int external) { return e != Elem::f80 && size_of(e) == external; }

bool to_big(Form f, const char* user, unsigned char* out) {
    int native = size_of(f.elem);
    if (is_real(f.elem) && !same_format(f.elem, f.external)) {
        put_big(out, f.external, real_bits(real_value(f.elem, user), f.external));
        return true;
    }
    Unsigned v = get_native(user, native), whole = is_signed(f.elem) ? extend(v, native) : v;
    put_big(out, f.external, whole);
    if (f.external >= native) return true;
    Unsigned back = get_big(out, f.external);
    return (is_signed(f.elem) ? extend(back, f.external) : back) == whole;
}

bool from_big(Form f, const unsigned char* in, char* user) {
    int native = size_of(f.elem);
    Unsigned v = get_big(in, f.external);
    if (is_real(f.elem) && !same_format(f.elem, f.external)) {
        store_real(f.elem, real_from(v, f.external), user);
        return true;
    }
    Unsigned whole = is_signed(f.elem) ? extend(v, f.external) : v;
    memcpy(user, &whole, static_cast<size_t>(native));
    if (native >= f.external) return true;
    Unsigned back = get_native(user, native);
    return (is_signed(f.elem) ? extend(back, native) : back) == whole;
}

// One direction of one conversion: `Out` writes the portable form.
template <bool Out>
struct Converter {
    unsigned char* portable;

    bool scalar(Form f, char* user) {
        bool fits = Out ? to_big(f, user, portable) : from_big(f, portable, user);
        portable += f.external;
        return fits;
    }
    bool element(Form f, char* user) {
        if (!is_complex(f.elem)) return scalar(f, user);
        Form part{part_of(f.elem), f.external / 2};
        return scalar(part, user) && scalar(part, user + size_of(f.elem) / 2);
    }
    // `count` elements of a named type.
    bool named(const Type& t, char* user, int64_t count) {
        Forms f = forms_of(t);
        if (count == 0) return true;
        if (t.size == 1 && f.value.external == 1) {
            Out ? memcpy(portable, user, static_cast<size_t>(count)) : memcpy(user, portable, static_cast<size_t>(count));
            portable += count;
            return true;
        }
        for (int64_t i = 0; i < count; i++, user += t.extent) {
            if (!element(f.value, user)) return false;
            if (f.index.external && !element(f.index, user + f.at)) return false;
        }
        return true;
    }
    bool walk(const Type& t, char* user, int64_t count) {
        if (t.is(Type::named)) return named(t, user, count);
        const Shape& s = t.layout->shape;
        for (int64_t i = 0; i < count; i++, user += t.extent) {
            if (s.form == Shape::repeat) {
                for (int64_t k = 0; k < s.count; k++)
                    if (!walk(*s.child, user + s.offset + k * s.stride, s.length)) return false;
            } else {
                for (int64_t k = 0; k < s.count; k++)
                    if (!walk(*s.blocks[k].child, user + s.blocks[k].offset, s.blocks[k].length)) return false;
            }
        }
        return true;
    }
};

Err unfit(const char* where) { return fail(Err::value_too_large, "a number does not fit %s", where); }

// Bytes of one element; false on overflow.
bool bytes_of(const Type& t, int64_t* out) {
    if (t.is(Type::named)) {
        *out = row_of(t)->external;
        return true;
    }
    const Shape& s = t.layout->shape;
    int64_t one, n;
    *out = 0;
    if (s.form == Shape::repeat)
        return multiply(s.count, s.length, &n) && bytes_of(*s.child, &one) && multiply(n, one, out);
    for (int64_t i = 0; i < s.count; i++) {
        if (!bytes_of(*s.blocks[i].child, &one) || !multiply(one, s.blocks[i].length, &n)) return false;
        if (__builtin_add_overflow(*out, n, out)) return false;
    }
    return true;
}

}  // namespace

int64_t external_size(const Type& t, int64_t count) {
    int64_t one, all;
    return bytes_of(t, &one) && multiply(one, count, &all) ? all : -1;
}

Err pack_external(const Buffer& b, void* to) {
    Converter<true> c{static_cast<unsigned char*>(to)};
    return c.walk(*b.type, static_cast<char*>(b.base), b.count) ? Err::ok : unfit("external32");
}

Err unpack_external(const Buffer& b, const void* from) {
    Converter<false> c{static_cast<unsigned char*>(const_cast<void*>(from))};
    return c.walk(*b.type, static_cast<char*>(b.base), b.count) ? Err::ok : unfit("this type here");
}

}  // namespace weft::type
