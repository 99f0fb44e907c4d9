#include "type/build.hpp"

#include "type/builder.hpp"

namespace weft::type {

namespace {

Err check_count(int64_t count) {
    return count < 0 ? fail(Err::count, "count %lld is negative", static_cast<long long>(count)) : Err::ok;
}

Err check_length(int64_t length, int64_t i) {
    if (length >= 0) return Err::ok;
    return fail(Err::arg, "block length %lld (of block %lld) is negative", static_cast<long long>(length), static_cast<long long>(i));
}

Err too_far() { return fail(Err::arg, "a displacement or stride is beyond 2^63 bytes"); }

// What vector and hvector share; `bytes` is the stride in bytes.
Err make_vector(Builder& b, int64_t count, int64_t length, int64_t bytes, const Type& old, Type** out) {
    WEFT_TRY(b.add_type(old));
    b.shape() = {Shape::repeat, 0, count, length, bytes, &old, nullptr};
    return b.finish(out);
}

// The blocks of the indexed family: displacements `unit` bytes apart, lengths from `lengths` or all the same.
template <class Lengths, class Displacements>
Err fill_blocks(Builder& b, int64_t count, Lengths length_of, Displacements displacement_of, int64_t unit, const Type& old) {
    WEFT_TRY(b.make_blocks(count));
    for (int64_t i = 0; i < count; i++) {
        Block& k = b.shape().blocks[i];
        k.length = length_of(i);
        k.child = &old;
        WEFT_TRY(check_length(k.length, i));
        if (!multiply(displacement_of(i), unit, &k.offset)) return too_far();
    }
    return Err::ok;
}

}  // namespace

Err contiguous(Width w, int64_t count, const Type& old, Type** out) {
    WEFT_TRY(check_count(count));
    Builder b;
    WEFT_TRY(b.start(Combiner::contiguous, w, 1, 1, 1));
    b.add_count(count);
    WEFT_TRY(b.add_type(old));
    b.shape() = {Shape::repeat, 0, 1, count, 0, &old, nullptr};
    return b.finish(out);
}

Err vector(Width w, int64_t count, int64_t length, int64_t stride, const Type& old, Type** out) {
    WEFT_TRY(check_count(count));
    WEFT_TRY(check_length(length, 0));
    int64_t bytes;
    if (!multiply(stride, old.extent, &bytes)) return too_far();
    Builder b;
    WEFT_TRY(b.start(Combiner::vector, w, 3, 3, 1));
    b.add_count(count);
    b.add_count(length);
    b.add_count(stride);
    return make_vector(b, count, length, bytes, old, out);
}

Err hvector(Width w, int64_t count, int64_t length, int64_t stride, const Type& old, Type** out) {
    WEFT_TRY(check_count(count));
    WEFT_TRY(check_length(length, 0));
    Builder b;
    WEFT_TRY(b.start(Combiner::hvector, w, 2, 3, 1));
    b.add_count(count);
    b.add_count(length);
    b.add_address(stride);
    return make_vector(b, count, length, stride, old, out);
}

Err indexed(Width w, int64_t count, Counts lengths, Counts displacements, const Type& old, Type** out) {
    WEFT_TRY(check_count(count));
    Builder b;
    WEFT_TRY(b.start(Combiner::indexed, w, w == Width::classic ? 2 * count + 1 : 0, w == Width::large ? 2 * count + 1 : 0, 1));
    b.add_count(count);
    for (int64_t i = 0; i < count; i++) b.add_count(lengths[i]);
    for (int64_t i = 0; i < count; i++) b.add_count(displacements[i]);
    WEFT_TRY(b.add_type(old));
    WEFT_TRY(fill_blocks(
        b, count, [&](int64_t i) { return lengths[i]; }, [&](int64_t i) { return displacements[i]; }, old.extent, old));
    return b.finish(out);
}

Err hindexed(Width w, int64_t count, Counts lengths, const int64_t* displacements, const Type& old, Type** out) {
    WEFT_TRY(check_count(count));
    Builder b;
    WEFT_TRY(b.start(Combiner::hindexed, w, count + 1, 2 * count + 1, 1));
    b.add_count(count);
    for (int64_t i = 0; i < count; i++) b.add_count(lengths[i]);
    for (int64_t i = 0; i < count; i++) b.add_address(displacements[i]);
    WEFT_TRY(b.add_type(old));
    WEFT_TRY(fill_blocks(
        b, count, [&](int64_t i) { return lengths[i]; }, [&](int64_t i) { return displacements[i]; }, 1, old));
    b.type().flags |= Type::absolute;
    return b.finish(out);
}

Err indexed_block(Width w, int64_t count, int64_t length, Counts displacements, const Type& old, Type** out) {
    WEFT_TRY(check_count(count));
    Builder b;
    WEFT_TRY(b.start(Combiner::indexed_block, w, count + 2, count + 2, 1));
    b.add_count(count);
    b.add_count(length);
    for (int64_t i = 0; i < count; i++) b.add_count(displacements[i]);
    WEFT_TRY(check_length(length, 0));
    WEFT_TRY(b.add_type(old));
    WEFT_TRY(fill_blocks(
        b, count, [&](int64_t) { return length; }, [&](int64_t i) { return displacements[i]; }, old.extent, old));
    return b.finish(out);
}

Err hindexed_block(Width w, int64_t count, int64_t length, const int64_t* displacements, const Type& old, Type** out) {
    WEFT_TRY(check_count(count));
    Builder b;
    WEFT_TRY(b.start(Combiner::hindexed_block, w, 2, count + 2, 1));
    b.add_count(count);
    b.add_count(length);
    for (int64_t i = 0; i < count; i++) b.add_address(displacements[i]);
    WEFT_TRY(check_length(length, 0));
    WEFT_TRY(b.add_type(old));
    WEFT_TRY(fill_blocks(
        b, count, [&](int64_t) { return length; }, [&](int64_t i) { return displacements[i]; }, 1, old));
    b.type().flags |= Type::absolute;
    return b.finish(out);
}

Err structure(Width w, int64_t count, Counts lengths, const int64_t* displacements, const Type* const* olds, Type** out) {
    WEFT_TRY(check_count(count));
    Builder b;
    WEFT_TRY(b.start(Combiner::structure, w, count + 1, 2 * count + 1, count));
    b.add_count(count);
    for (int64_t i = 0; i < count; i++) b.add_count(lengths[i]);
    for (int64_t i = 0; i < count; i++) b.add_address(displacements[i]);
    WEFT_TRY(b.make_blocks(count));
    for (int64_t i = 0; i < count; i++) {
        WEFT_TRY(check_length(lengths[i], i));
        WEFT_TRY(b.add_type(*olds[i]));
        b.shape().blocks[i] = {displacements[i], lengths[i], olds[i]};
    }
    b.type().flags |= Type::absolute;
    return b.finish(out);
}

Err resized(Width w, const Type& old, int64_t lb, int64_t extent, Type** out) {
    Builder b;
    WEFT_TRY(b.start(Combiner::resized, w, 0, 2, 1));
    b.add_address(lb);
    b.add_address(extent);
    WEFT_TRY(b.add_type(old));
    b.shape() = {Shape::repeat, 0, 1, 1, 0, &old, nullptr};
    b.set_bounds(lb, extent);
    return b.finish(out);
}

Err dup(const Type& old, Type** out) {
    Builder b;
    WEFT_TRY(b.start(Combiner::dup, Width::classic, 0, 0, 1));
    WEFT_TRY(b.add_type(old));
    b.shape() = {Shape::repeat, 0, 1, 1, 0, &old, nullptr};
    Type* t;
    WEFT_TRY(b.finish(&t));
    t->flags |= old.flags & Type::committed;
    *out = t;
    return Err::ok;
}

Err commit(Type& t) {
    if (t.is(Type::unsupported)) return fail(Err::type, "the Fortran compiler lacks this type (see MPI_Abi_set_fortran_info)");
    // The program was made by the constructor, from those of its parts; nothing is left to do but to say so.
    if (!t.is(Type::predefined)) t.flags |= Type::committed;
    return Err::ok;
}

const Contents& contents_of(const Type& t) {
    static constexpr Contents named{};
    return t.layout && !t.is(Type::named) ? t.layout->contents : named;
}

}  // namespace weft::type
