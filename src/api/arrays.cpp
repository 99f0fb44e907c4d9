// Checks of arrays that are worth a call: those of handles, and what depends on all of their elements.
#include "api/bindings.hpp"
#include "topo/topo.hpp"

namespace weft::bindings {

namespace {

topo::Neighbours neighbours(const obj::Comm& c) {
    topo::Neighbours n{};
    if (c.topology != nullptr) (void)topo::neighbours(c, &n);
    return n;
}

}  // namespace

bool good_types(const MPI_Datatype* a, int64_t n, obj::Ints counts) {
    if (!good_array(a, n)) return false;
    for (int64_t i = 0; i < n; i++)
        if (!usable(obj::type_of(a[i])) && (a[i] != MPI_DATATYPE_NULL || counts[i] != 0)) return false;
    return true;
}

bool good_known_types(const MPI_Datatype* a, int64_t n) {
    if (!good_array(a, n)) return false;
    for (int64_t i = 0; i < n; i++)
        if (!known(obj::type_of(a[i]))) return false;
    return true;
}

int32_t sources(const obj::Comm& c) { return neighbours(c).sources; }
int32_t destinations(const obj::Comm& c) { return neighbours(c).destinations; }

bool no_blocks_at(const void* buf, obj::Ints counts, int64_t n, const type::Type* t) {
    for (int64_t i = 0; i < n; i++)
        if (!good_buffer(buf, counts[i], t)) return false;
    return true;
}

bool no_blocks_at(const void* buf, obj::Ints counts, int64_t n, const MPI_Datatype* types) {
    for (int64_t i = 0; i < n; i++)
        if (!good_buffer(buf, counts[i], obj::type_of(types[i]))) return false;
    return true;
}

}  // namespace weft::bindings
