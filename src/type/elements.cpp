#include "type/elements.hpp"

#include "type/build.hpp"
#include "type/predefined.hpp"

namespace weft::type {

namespace {

// Joins elements that follow each other; gives out a run when the next one does not.
struct Walker {
    TakeRun* take;
    void* context;
    ElementRun run{0, 0, nullptr};

    bool flush() { return run.count == 0 || take(context, run); }

    bool add(const Type& t, int64_t offset, int64_t count) {
        if (run.type == &t && offset == run.offset + run.count * t.extent) {
            run.count += count;
            return true;
        }
        if (count == 0) return true;
        const bool going = flush();
        run = {offset, count, &t};
        return going;
    }

    bool walk(const Type& t, int64_t offset, int64_t count) {
        if (t.is(Type::named) || t.is_pair()) return add(t, offset, count);
        const Shape& s = t.layout->shape;
        for (int64_t i = 0; i < count; i++, offset += t.extent)
            for (int64_t k = 0; k < s.count; k++) {
                const bool going = s.form == Shape::repeat ? walk(*s.child, offset + s.offset + k * s.stride, s.length)
                                                           : walk(*s.blocks[k].child, offset + s.blocks[k].offset, s.blocks[k].length);
                if (!going) return false;
            }
        return true;
    }
};

}  // namespace

int32_t number_of(const Type& t) {
    if (t.is(Type::named)) return t.id;
    const Contents& pair = contents_of(t);   // of MPI_Type_get_value_index: its handle is an address
    return pair.types[0]->id << 16 | pair.types[1]->id;
}

const Type* element_with(int32_t number) {
    if (number <= 0) return nullptr;
    const Type* t = predefined_at(number & 0xffff);
    if (number >> 16 != 0 && value_index(*predefined_at(number >> 16), *t, &t) != Err::ok) return nullptr;
    return t != nullptr && t->kind == Kind::type ? t : nullptr;
}

void each_run(const Type& t, int64_t count, TakeRun* take, void* context) {
    Walker w{take, context};
    if (w.walk(t, 0, count)) (void)w.flush();
}

}  // namespace weft::type
