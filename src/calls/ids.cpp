#include "calls/ids.hpp"

#include "obj/registry.hpp"

namespace weft::calls {

namespace {

constexpr int first_id = static_cast<int>(obj::first_address);

// Freed objects stay readable, so a slot is stale when its object has died or lives again under another number.
bool live(const obj::Registry& r, int slot) {
    const Object* o = r.ids[slot];
    return o != nullptr && o->kind != Kind::dead && o->id == first_id + slot;
}

}  // namespace

int id_of(Process& p, Object* o) {
    if (o->kind < Kind::comm || o->kind > Kind::message) return 0;
    obj::Registry& r = obj::registry(p);
    SpinGuard guard(r.lock);
    if (o->id != 0) return o->id;
    int slot = r.n_ids;
    if (r.n_ids == r.id_capacity) {   // before growing, look for a stale slot
        for (int i = 0; i < r.n_ids && slot == r.n_ids; i++)
            if (!live(r, i)) slot = i;
        if (slot == r.n_ids && obj::grow(&r.ids, r.n_ids, &r.id_capacity) != Err::ok) return 0;
    }
    if (slot == r.n_ids) r.n_ids++;
    r.ids[slot] = o;
    o->id = first_id + slot;
    return o->id;
}

Object* object_with(Process& p, int id, Kind kind) {
    obj::Registry& r = obj::registry(p);
    SpinGuard guard(r.lock);
    int slot = id - first_id;
    if (slot < 0 || slot >= r.n_ids || !live(r, slot)) return nullptr;
    return r.ids[slot]->kind == kind ? r.ids[slot] : nullptr;
}

}  // namespace weft::calls
