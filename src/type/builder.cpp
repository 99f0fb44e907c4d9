#include "type/builder.hpp"

#include <stdlib.h>
#include <string.h>

#include "base/pool.hpp"
#include "base/spin.hpp"
#include "type/elem.hpp"
#include "type/flatten.hpp"

namespace weft::type {

namespace {

// Types outlive any one Process (a session may end while its types live), so their pool belongs to this floor.
constinit Spin pool_lock;
constinit Pool pool{sizeof(Type), 64};

using Wide = __int128;

constexpr int max_depth = 5000;   // what runs over types recurses once or twice a level

bool fits(Wide v) { return v >= INT64_MIN && v <= INT64_MAX; }

// What a type map spans, gathered block by block.
struct Bounds {
    struct Range {
        Wide low = 0, high = 0;
        bool any = false;
        void add(Wide l, Wide h) {
            if (!any || l < low) low = l;
            if (!any || h > high) high = h;
            any = true;
        }
    };
    Range data, lower, upper;   // bytes; lower and upper bounds that users set
    Wide size = 0, elements = 0;
    uint32_t align = 1;
    int32_t uniform = -1;       // -1: nothing yet; 0: mixed
    uint32_t flags = 0;

    // `count` times, `stride` apart: `length` elements of `child` from `offset` on. False: too big for 64 bits.
    bool add(const Type& child, int64_t offset, int64_t length, int64_t count, int64_t stride) {
        if (length == 0 || count == 0) return true;
        Wide along = Wide(length - 1) * child.extent, across = Wide(count - 1) * stride;
        Wide low = Wide(offset) + (along < 0 ? along : 0) + (across < 0 ? across : 0);
        Wide high = Wide(offset) + (along > 0 ? along : 0) + (across > 0 ? across : 0);
        if (child.is(Type::marked_lb)) lower.add(child.lb + low, child.lb + high);
        if (child.is(Type::marked_ub)) upper.add(Wide(child.ub()) + low, Wide(child.ub()) + high);
        flags |= child.flags & (Type::marked_lb | Type::marked_ub | Type::absolute);
        if (child.align > align) align = child.align;
        if (child.size == 0) return true;
        data.add(Wide(child.true_lb) + low, Wide(child.true_lb) + child.true_extent + high);
        int64_t n;
        if (!multiply(length, count, &n)) return false;
        size += Wide(child.size) * n;
        elements += Wide(elements_of(child)) * n;
        int32_t u = uniform_of(child);
        uniform = uniform < 0 || uniform == u ? u : 0;
        return fits(size);
    }
};

}  // namespace

Type* take_type() {
    Type* t;
    {
        SpinGuard guard(pool_lock);
        t = static_cast<Type*>(pool.take());
    }
    if (!t) return nullptr;
    // Field by field: a stale handle may be looking at `kind`, which is set last.
    t->id = 0;
    t->flags = 0;
    t->align = 1;
    t->size = t->extent = t->lb = t->true_lb = t->true_extent = 0;
    t->refs.store(1, std::memory_order_relaxed);
    t->elem = t->index = Elem::none;
    t->layout = nullptr;
    t->extra = nullptr;
    t->kind = Kind::type;
    return t;
}

void give_type(Type* t) {
    t->kind = Kind::dead;
    SpinGuard guard(pool_lock);
    pool.give(t);
}

void release(const Type& ct) {
    if (ct.is(Type::predefined)) return;
    auto& t = const_cast<Type&>(ct);
    if (t.refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    Layout* l = t.layout;
    for (int64_t i = 0; i < l->contents.n_types; i++) release(*l->contents.types[i]);
    if (l->inner) release(*l->inner);
    free_layout_memory(*l);
    free(l);
    give_type(&t);
}

int64_t elements_of(const Type& t) {
    if (t.layout) return t.layout->elements;
    return t.size == 0 ? 0 : t.is_pair() ? 2 : 1;
}

int32_t uniform_of(const Type& t) {
    if (t.layout) return t.layout->uniform;
    if (t.is_pair()) return size_of(t.elem) == size_of(t.index) ? size_of(t.elem) : 0;
    return static_cast<int32_t>(t.size);
}

Builder::~Builder() {
    if (type_) release(*type_);   // an error on the way
}

Err Builder::start(Combiner c, Width w, int64_t ints, int64_t longs, int64_t types) {
    large_ = w == Width::large;
    layout_ = static_cast<Layout*>(malloc(sizeof(Layout)));
    if (!layout_) return fail(Err::no_mem, "no memory for a datatype");
    *layout_ = Layout{};
    type_ = take_type();
    if (!type_) {
        free(layout_);
        layout_ = nullptr;
        return fail(Err::no_mem, "no memory for a datatype");
    }
    type_->layout = layout_;
    Contents& k = layout_->contents;
    k.combiner = c;
    k.large = large_;
    int64_t bytes;
    if (longs < 0 || ints < 0 || !multiply(longs + types + ints, 8, &bytes)) return fail(Err::no_mem, "too many blocks for a datatype");
    if (bytes == 0) return Err::ok;
    auto* p = static_cast<char*>(layout_memory(*layout_, bytes));
    if (!p) return fail(Err::no_mem, "no memory for the arguments of a datatype");
    k.addresses = reinterpret_cast<int64_t*>(p);
    k.types = reinterpret_cast<const Type**>(p + longs * 8);
    k.ints = reinterpret_cast<int32_t*>(p + (longs + types) * 8);
    return Err::ok;
}

void Builder::add_int(int64_t v) {
    Contents& k = layout_->contents;
    k.ints[k.n_ints++] = static_cast<int32_t>(v);
}

void Builder::add_count(int64_t v) {
    Contents& k = layout_->contents;
    if (large_)
        k.addresses[k.n_counts++] = v;
    else
        add_int(v);
}

void Builder::add_address(int64_t v) {
    Contents& k = layout_->contents;
    k.addresses[large_ ? k.n_counts++ : k.n_addresses++] = v;
}

Err Builder::add_type(const Type& old) {
    if (old.kind != Kind::type) return fail(Err::type, "a datatype to build from is no datatype");
    if (old.is(Type::unsupported)) return fail(Err::type, "the Fortran compiler lacks this type (see MPI_Abi_set_fortran_info)");
    Contents& k = layout_->contents;
    retain(old);
    k.types[k.n_types++] = &old;
    return Err::ok;
}

Err Builder::make_blocks(int64_t count) {
    Shape& s = layout_->shape;
    s.form = Shape::list;
    s.count = count;
    int64_t bytes;
    if (!multiply(count, sizeof(Block), &bytes)) return fail(Err::no_mem, "too many blocks for a datatype");
    s.blocks = static_cast<Block*>(layout_memory(*layout_, bytes));
    return s.blocks ? Err::ok : fail(Err::no_mem, "no memory for the blocks of a datatype");
}

void Builder::set_bounds(int64_t lb, int64_t extent) {
    explicit_ = true;
    lb_ = lb;
    extent_ = extent;
}

Err Builder::compute_bounds() {
    const Shape& s = layout_->shape;
    Bounds b;
    bool ok = true;
    if (s.form == Shape::repeat)
        ok = b.add(*s.child, s.offset, s.length, s.count, s.stride);
    else
        for (int64_t i = 0; i < s.count && ok; i++) ok = b.add(*s.blocks[i].child, s.blocks[i].offset, s.blocks[i].length, 1, 0);
    Wide true_extent = b.data.high - b.data.low;
    Wide lb = b.lower.any ? b.lower.low : b.data.low;
    Wide ub = b.upper.any ? b.upper.high : b.data.high;
    // Where no upper bound was set, the extent is rounded up as a C compiler pads a structure.
    if (Wide rest = (ub - lb) % b.align; !b.upper.any && rest > 0) ub += b.align - rest;
    if (explicit_) {
        lb = lb_;
        ub = Wide(lb_) + extent_;
        b.flags |= Type::marked_lb | Type::marked_ub;
    }
    if (!ok || !fits(b.data.low) || !fits(b.data.high) || !fits(true_extent) || !fits(lb) || !fits(ub) || !fits(ub - lb))
        return fail(Err::count, "the datatype would span more than 2^63 bytes");
    type_->flags |= b.flags;
    type_->align = b.align;
    type_->size = static_cast<int64_t>(b.size);
    type_->lb = static_cast<int64_t>(lb);
    type_->extent = static_cast<int64_t>(ub - lb);
    type_->true_lb = static_cast<int64_t>(b.data.low);
    type_->true_extent = static_cast<int64_t>(true_extent);
    layout_->elements = static_cast<int64_t>(b.elements);
    layout_->uniform = b.uniform < 0 ? 0 : b.uniform;
    return Err::ok;
}

Err Builder::compute_depth() {
    auto under = [](const Type& t) { return t.layout ? t.layout->depth : 0; };
    int32_t below = layout_->inner ? under(*layout_->inner) : 0;
    for (int64_t i = 0; i < layout_->contents.n_types; i++) {
        int32_t d = under(*layout_->contents.types[i]);
        below = d > below ? d : below;
    }
    layout_->depth = below + 1;
    return below < max_depth ? Err::ok : fail(Err::no_mem, "a datatype is nested more than %d deep", max_depth);
}

Err Builder::finish(Type** out) {
    WEFT_TRY(compute_depth());
    WEFT_TRY(compute_bounds());
    WEFT_TRY(flatten(*layout_));
    Type& t = *type_;
    const Node& root = layout_->root;
    if (root.op == Node::empty || root.op == Node::run) {
        t.flags |= Type::contiguous;
        if (t.size == 0 || (root.offset == 0 && t.extent == t.size)) t.flags |= Type::dense;
    }
    *out = type_;
    type_ = nullptr;
    return Err::ok;
}

}  // namespace weft::type
