#include "calls/types.hpp"

#include <cstdlib>
#include <cstring>

#include "obj/attr.hpp"
#include "obj/handles.hpp"
#include "obj/registry.hpp"
#include "type/build.hpp"
#include "type/predefined.hpp"

namespace weft::calls {

using type::Counts;
using type::Width;

namespace {

Width width(bool large) { return large ? Width::large : Width::classic; }
Counts counts(Ints a) { return {a.data, a.wide}; }
const int64_t* bytes(Ints a) { return static_cast<const int64_t*>(a.data); }   // addresses are 64 bits wide in both forms

Err take(const Type* t, Type** out) {
    *out = const_cast<Type*>(t);
    return Err::ok;
}

}  // namespace

Err type_contiguous(Process&, bool large, int64_t count, const Type& old, Type** out) {
    return type::contiguous(width(large), count, old, out);
}

Err type_vector(Process&, bool large, int64_t count, int64_t length, int64_t stride, const Type& old, Type** out) {
    return type::vector(width(large), count, length, stride, old, out);
}

Err type_hvector(Process&, bool large, int64_t count, int64_t length, int64_t stride, const Type& old, Type** out) {
    return type::hvector(width(large), count, length, stride, old, out);
}

Err type_indexed(Process&, bool large, int64_t count, Ints lengths, Ints displacements, const Type& old, Type** out) {
    return type::indexed(width(large), count, counts(lengths), counts(displacements), old, out);
}

Err type_hindexed(Process&, bool large, int64_t count, Ints lengths, Ints displacements, const Type& old, Type** out) {
    return type::hindexed(width(large), count, counts(lengths), bytes(displacements), old, out);
}

Err type_indexed_block(Process&, bool large, int64_t count, int64_t length, Ints displacements, const Type& old, Type** out) {
    return type::indexed_block(width(large), count, length, counts(displacements), old, out);
}

Err type_hindexed_block(Process&, bool large, int64_t count, int64_t length, Ints displacements, const Type& old, Type** out) {
    return type::hindexed_block(width(large), count, length, bytes(displacements), old, out);
}

Err type_struct(Process& p, bool large, int64_t count, Ints lengths, Ints displacements, const MPI_Datatype* handles, Type** out) {
    const Type* few[16] = {};
    const Type** olds = few;
    if (count > 16) olds = static_cast<const Type**>(malloc(static_cast<size_t>(count) * sizeof(Type*)));
    if (!olds) return fail(Err::no_mem, "no memory for a datatype of %lld blocks", static_cast<long long>(count));
    for (int64_t i = 0; i < count; i++) olds[i] = obj::type_of(p, handles[i]);
    Err e = type::structure(width(large), count, counts(lengths), bytes(displacements), olds, out);
    if (olds != few) free(olds);
    return e;
}

Err type_subarray(Process&, bool large, int ndims, Ints sizes, Ints subsizes, Ints starts, int order, const Type& old, Type** out) {
    return type::subarray(width(large), ndims, counts(sizes), counts(subsizes), counts(starts), order, old, out);
}

Err type_darray(Process&, bool large, int size, int rank, int ndims, Ints gsizes, const int* distributions, const int* dargs,
                const int* psizes, int order, const Type& old, Type** out) {
    return type::darray(width(large), {size, rank, ndims, distributions, dargs, psizes, order}, counts(gsizes), old, out);
}

Err type_resized(Process&, bool large, const Type& old, int64_t lb, int64_t extent, Type** out) {
    return type::resized(width(large), old, lb, extent, out);
}

Err type_dup(Process& p, const Type& old, Type** out) {
    Type* t;
    WEFT_TRY(type::dup(old, &t));
    if (Err e = obj::copy_attributes(p, old, *t); e != Err::ok) {
        type::release(*t);
        return e;
    }
    return take(t, out);
}

Err type_f90_real(Process&, int precision, int range, Type** out) {
    const Type* t;
    WEFT_TRY(type::f90_real(precision, range, &t));
    return take(t, out);
}

Err type_f90_complex(Process&, int precision, int range, Type** out) {
    const Type* t;
    WEFT_TRY(type::f90_complex(precision, range, &t));
    return take(t, out);
}

Err type_f90_integer(Process&, int range, Type** out) {
    const Type* t;
    WEFT_TRY(type::f90_integer(range, &t));
    return take(t, out);
}

Err type_match_size(Process&, int type_class, int size, Type** out) {
    const Type* t;
    WEFT_TRY(type::match_size(type_class, size, &t));
    return take(t, out);
}

Err type_value_index(Process&, const Type& value, const Type& index, Type** out) {
    const Type* t;
    WEFT_TRY(type::value_index(value, index, &t));
    // Pairs without a name are optional. The engine has them, but programs of the field take whatever has no name for a
    // derived type and try to free it or to take it apart, so only the named ones are given out.
    if (t != nullptr && !t->is(Type::named)) t = nullptr;
    return take(t, out);
}

Err type_commit(Process&, Type** t) { return type::commit(**t); }

Err type_free(Process& p, Type** t) {
    if ((*t)->is(Type::predefined)) return fail(Err::type, "a predefined datatype cannot be freed");
    WEFT_TRY(obj::delete_attributes(p, **t));
    type::release(**t);
    *t = nullptr;
    return Err::ok;
}

Err type_size(Process&, const Type& t, int64_t* size) {
    *size = t.size;
    return Err::ok;
}

Err type_extent(Process&, const Type& t, int64_t* lb, int64_t* extent) {
    *lb = t.lb;
    *extent = t.extent;
    return Err::ok;
}

Err type_true_extent(Process&, const Type& t, int64_t* lb, int64_t* extent) {
    *lb = t.true_lb;
    *extent = t.true_extent;
    return Err::ok;
}

namespace {

// The classic inquiries have no place for large counts.
Err only_classic(const type::Contents& c) {
    if (c.n_counts == 0) return Err::ok;
    return fail(Err::type, "the datatype was built with large counts: ask by the _c form");
}

// What the caller has room for, against what there is.
Err enough(const char* what, int64_t room, int64_t n) {
    if (room >= n) return Err::ok;
    return fail(Err::arg, "room for %lld %s is too little for %lld", static_cast<long long>(room), what, static_cast<long long>(n));
}

template <class T> void copy(T* to, const T* from, int64_t n) {
    if (n > 0) memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
}

// The caller gets references of its own to derived types.
void copy_types(const type::Contents& c, MPI_Datatype* out) {
    for (int64_t i = 0; i < c.n_types; i++) {
        type::retain(*c.types[i]);
        out[i] = obj::handle_of(c.types[i]);
    }
}

Err has_contents(const type::Contents& c) {
    return c.combiner == type::Combiner::named ? fail(Err::type, "a named datatype has no contents") : Err::ok;
}

}  // namespace

Err type_envelope(Process&, const Type& t, int64_t* ints, int64_t* addresses, int64_t* types, int* combiner) {
    const type::Contents& c = type::contents_of(t);
    WEFT_TRY(only_classic(c));
    *ints = c.n_ints;
    *addresses = c.n_addresses;
    *types = c.n_types;
    *combiner = static_cast<int>(c.combiner);
    return Err::ok;
}

Err type_envelope_large(Process&, const Type& t, int64_t* ints, int64_t* addresses, int64_t* large, int64_t* types, int* combiner) {
    const type::Contents& c = type::contents_of(t);
    *ints = c.n_ints;
    *addresses = c.n_addresses;
    *large = c.n_counts;
    *types = c.n_types;
    *combiner = static_cast<int>(c.combiner);
    return Err::ok;
}

Err type_contents(Process& p, const Type& t, int64_t max_ints, int64_t max_addresses, int64_t max_types, int* ints,
                  int64_t* addresses, MPI_Datatype* types) {
    WEFT_TRY(only_classic(type::contents_of(t)));
    return type_contents_large(p, t, max_ints, max_addresses, 0, max_types, ints, addresses, nullptr, types);
}

Err type_contents_large(Process&, const Type& t, int64_t max_ints, int64_t max_addresses, int64_t max_counts, int64_t max_types,
                        int* ints, int64_t* addresses, int64_t* large, MPI_Datatype* types) {
    const type::Contents& c = type::contents_of(t);
    WEFT_TRY(has_contents(c));
    WEFT_TRY(enough("integers", max_ints, c.n_ints));
    WEFT_TRY(enough("addresses", max_addresses, c.n_addresses));
    WEFT_TRY(enough("large counts", max_counts, c.n_counts));
    WEFT_TRY(enough("datatypes", max_types, c.n_types));
    copy(ints, c.ints, c.n_ints);
    copy(addresses, c.addresses, c.n_addresses);
    copy(large, c.addresses, c.n_counts);
    copy_types(c, types);
    return Err::ok;
}

Err get_elements(Process&, const Status& s, const Type& t, int64_t* count) {
    int64_t n = type::elements(t, s.bytes);
    *count = n < 0 ? obj::undefined : n;
    return Err::ok;
}

Err status_set_elements(Process&, Status& s, const Type& t, int64_t count) {
    int64_t n = type::element_bytes(t, count);
    if (n < 0) return fail(Err::arg, "%lld elements of this datatype cannot be", static_cast<long long>(count));
    s.bytes = n;
    return Err::ok;
}

Err type_set_name(Process& p, type::Type& t, const char* name) {
    obj::Owner o{};
    WEFT_TRY(obj::owner(t, &o));
    auto* x = static_cast<obj::TypeExtra*>(t.extra);
    SpinGuard guard(obj::registry(p).lock);
    strncpy(x->name, name, sizeof x->name - 1);
    x->name[sizeof x->name - 1] = 0;
    x->named = true;
    return Err::ok;
}

Err type_get_name(Process& p, type::Type& t, char* name, int* length) {
    auto* x = static_cast<obj::TypeExtra*>(t.extra);
    SpinGuard guard(obj::registry(p).lock);
    const char* text = x != nullptr && x->named ? x->name : type::name_of(t);
    *length = static_cast<int>(strlen(text));
    memcpy(name, text, static_cast<size_t>(*length) + 1);
    return Err::ok;
}

}  // namespace weft::calls
