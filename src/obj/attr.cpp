#include "obj/attr.hpp"

#include <cstdlib>
#include <cstring>

#include "obj/handles.hpp"
#include "obj/process.hpp"
#include "obj/registry.hpp"
#include "obj/win.hpp"

namespace weft::obj {

// Lives while it is not freed or an attribute still uses it. Its number is first_keyval + its index in the registry.
struct Keyval {
    Owner::Of of;
    bool freed;
    int32_t users;
    int32_t number;
    void* copy;      // callbacks, typed by `of`
    void* del;
    void* extra;
};

// One attribute, and those that were set before it.
struct Attributes {
    Attributes* next;
    Keyval* keyval;
    void* value;
};

namespace {

constexpr int first_keyval = 1024;

// With the registry's lock held.
Keyval* find_keyval(Registry& r, Owner::Of of, int number) {
    int index = number - first_keyval;
    if (index < 0 || index >= r.n_keyvals) return nullptr;
    Keyval* k = r.keyvals[index];
    return k != nullptr && k->of == of ? k : nullptr;
}

Attributes** find(Attributes** list, const Keyval* k) {
    for (Attributes** a = list; *a != nullptr; a = &(*a)->next)
        if ((*a)->keyval == k) return a;
    return nullptr;
}

void release_keyval(Registry& r, Keyval* k) {
    if (--k->users > 0 || !k->freed) return;
    r.keyvals[k->number - first_keyval] = nullptr;
    free(k);
}

Err bad_keyval(int number) { return fail(Err::keyval, "there is no keyval %d for this kind of object", number); }

// The three kinds of callback differ only in the type of the handle, which is a pointer in each.
Err call_delete(const Keyval& k, void* handle, void* value) {
    if (k.del == nullptr) return Err::ok;
    int code = 0;
    switch (k.of) {
    case Owner::comm:
        code = reinterpret_cast<MPI_Comm_delete_attr_function*>(k.del)(static_cast<MPI_Comm>(handle), k.number, value, k.extra);
        break;
    case Owner::type:
        code = reinterpret_cast<MPI_Type_delete_attr_function*>(k.del)(static_cast<MPI_Datatype>(handle), k.number, value, k.extra);
        break;
    case Owner::win:
        code = reinterpret_cast<MPI_Win_delete_attr_function*>(k.del)(static_cast<MPI_Win>(handle), k.number, value, k.extra);
        break;
    }
    return code == MPI_SUCCESS ? Err::ok : fail(Err{code}, "the delete callback of an attribute returned %d", code);
}

Err call_copy(const Keyval& k, void* handle, void* value, void** copy, int* flag) {
    *flag = 0;
    if (k.copy == nullptr) return Err::ok;
    if (k.copy == reinterpret_cast<void*>(MPI_COMM_DUP_FN)) {
        *copy = value;
        *flag = 1;
        return Err::ok;
    }
    int code = 0;
    switch (k.of) {
    case Owner::comm:
        code = reinterpret_cast<MPI_Comm_copy_attr_function*>(k.copy)(static_cast<MPI_Comm>(handle), k.number, k.extra, value, copy, flag);
        break;
    case Owner::type:
        code = reinterpret_cast<MPI_Type_copy_attr_function*>(k.copy)(static_cast<MPI_Datatype>(handle), k.number, k.extra, value, copy, flag);
        break;
    case Owner::win:
        code = reinterpret_cast<MPI_Win_copy_attr_function*>(k.copy)(static_cast<MPI_Win>(handle), k.number, k.extra, value, copy, flag);
        break;
    }
    return code == MPI_SUCCESS ? Err::ok : fail(Err{code}, "the copy callback of an attribute returned %d", code);
}

// Puts a value in place without callbacks; the keyval has one user more.
Err put(Registry& r, Owner o, Keyval* k, void* value) {
    auto* a = static_cast<Attributes*>(malloc(sizeof(Attributes)));
    if (a == nullptr) return fail(Err::no_mem, "no memory for an attribute");
    SpinGuard guard(r.lock);
    *a = {*o.list, k, value};
    *o.list = a;
    k->users++;
    return Err::ok;
}

// Removes the attribute after its callback allowed it.
Err remove(Registry& r, Owner o, Keyval* k, void* value) {
    WEFT_TRY(call_delete(*k, o.handle, value));
    SpinGuard guard(r.lock);
    Attributes** link = find(o.list, k);
    if (link == nullptr) return Err::ok;
    Attributes* a = *link;
    *link = a->next;
    free(a);
    release_keyval(r, k);
    return Err::ok;
}

Err erase_all(Process& p, Owner o) {
    while (Attributes* a = *o.list) WEFT_TRY(remove(registry(p), o, a->keyval, a->value));
    return Err::ok;
}

// Oldest first, so that the copy lists them in the same order.
Err copy_from(Process& p, Owner from, Owner to, const Attributes* a) {
    if (a == nullptr) return Err::ok;
    WEFT_TRY(copy_from(p, from, to, a->next));
    void* value = nullptr;
    int flag = 0;
    WEFT_TRY(call_copy(*a->keyval, from.handle, a->value, &value, &flag));
    return flag != 0 ? put(registry(p), to, a->keyval, value) : Err::ok;
}

Err copy_all(Process& p, Owner from, Owner to) {
    if (*from.list == nullptr) return Err::ok;
    Err e = copy_from(p, from, to, *from.list);
    if (e != Err::ok && erase_all(p, to) != Err::ok) return e;
    return e;
}

}  // namespace

Owner owner(Comm& c) { return {Owner::comm, &c.attributes, handle_of(&c)}; }

Err owner(type::Type& t, Owner* out) {
    if (t.extra == nullptr) {
        auto* fresh = static_cast<TypeExtra*>(calloc(1, sizeof(TypeExtra)));
        if (fresh == nullptr) return fail(Err::no_mem, "no memory for the attributes of a datatype");
        void* expected = nullptr;
        if (!__atomic_compare_exchange_n(&t.extra, &expected, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) free(fresh);
    }
    *out = {Owner::type, &static_cast<TypeExtra*>(t.extra)->attributes, type::handle_of(t)};
    return Err::ok;
}

Err create_keyval(Process& p, Owner::Of of, void* copy, void* del, int* number, void* extra) {
    auto* k = static_cast<Keyval*>(malloc(sizeof(Keyval)));
    if (k == nullptr) return fail(Err::no_mem, "no memory for a keyval");
    Registry& r = registry(p);
    SpinGuard guard(r.lock);
    int slot = r.n_keyvals;
    if (slot == r.keyval_capacity)   // before growing, look for one whose keyval has gone
        for (int i = 0; i < r.n_keyvals && slot == r.n_keyvals; i++)
            if (r.keyvals[i] == nullptr) slot = i;
    if (slot == r.n_keyvals) {
        if (Err e = grow(&r.keyvals, r.n_keyvals, &r.keyval_capacity); e != Err::ok) {
            free(k);
            return e;
        }
        r.n_keyvals++;
    }
    *k = {of, false, 1, first_keyval + slot, copy, del, extra};
    r.keyvals[slot] = k;
    *number = k->number;
    return Err::ok;
}

Err free_keyval(Process& p, Owner::Of of, int* number) {
    Registry& r = registry(p);
    SpinGuard guard(r.lock);
    Keyval* k = find_keyval(r, of, *number);
    if (k == nullptr) return bad_keyval(*number);
    if (!k->freed) {   // once more is no error while attributes still use it
        k->freed = true;
        release_keyval(r, k);
    }
    *number = MPI_KEYVAL_INVALID;
    return Err::ok;
}

Err set_attribute(Process& p, Owner o, int number, void* value) {
    Registry& r = registry(p);
    Keyval* k;
    void* old = nullptr;
    bool replaces = false;
    {
        SpinGuard guard(r.lock);
        k = find_keyval(r, o.of, number);
        if (k == nullptr || k->freed) return bad_keyval(number);
        if (Attributes** a = find(o.list, k)) {
            old = (*a)->value;
            replaces = true;
        }
    }
    if (!replaces) return put(r, o, k, value);
    WEFT_TRY(call_delete(*k, o.handle, old));
    {
        SpinGuard guard(r.lock);
        if (Attributes** a = find(o.list, k)) {
            (*a)->value = value;
            return Err::ok;
        }
    }
    return put(r, o, k, value);   // the callback removed it
}

Err get_attribute(Process& p, Owner o, int number, void* out, bool* flag) {
    Registry& r = registry(p);
    SpinGuard guard(r.lock);
    Keyval* k = find_keyval(r, o.of, number);
    if (k == nullptr) return bad_keyval(number);
    Attributes** a = find(o.list, k);
    if (a != nullptr) memcpy(out, &(*a)->value, sizeof(void*));
    *flag = a != nullptr;
    return Err::ok;
}

Err delete_attribute(Process& p, Owner o, int number) {
    Registry& r = registry(p);
    Keyval* k;
    void* value;
    {
        SpinGuard guard(r.lock);
        k = find_keyval(r, o.of, number);
        if (k == nullptr) return bad_keyval(number);
        Attributes** a = find(o.list, k);
        if (a == nullptr) return fail(Err::keyval, "the object has no attribute of keyval %d", number);
        value = (*a)->value;
    }
    return remove(r, o, k, value);
}

Err copy_attributes(Process& p, Comm& from, Comm& to) { return copy_all(p, owner(from), owner(to)); }
Err delete_attributes(Process& p, Win& w) { return w.attributes == nullptr ? Err::ok : erase_all(p, owner(w)); }
Err delete_attributes(Process& p, Comm& c) { return c.attributes == nullptr ? Err::ok : erase_all(p, owner(c)); }

Err copy_attributes(Process& p, const type::Type& from, type::Type& to) {
    if (from.extra == nullptr || static_cast<TypeExtra*>(from.extra)->attributes == nullptr) return Err::ok;
    Owner a{}, b{};
    WEFT_TRY(owner(const_cast<type::Type&>(from), &a));
    WEFT_TRY(owner(to, &b));
    return copy_all(p, a, b);
}

Err delete_attributes(Process& p, type::Type& t) {
    if (t.extra == nullptr) return Err::ok;
    Owner o{};
    WEFT_TRY(owner(t, &o));
    WEFT_TRY(erase_all(p, o));
    free(t.extra);
    t.extra = nullptr;
    return Err::ok;
}

}  // namespace weft::obj
