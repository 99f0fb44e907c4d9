// How predefined objects are found by their ABI numbers: an array of places in the array of objects. Any floor may include
// this; op/ and type/ do, obj/ makes handles of both. Computed by the compiler, never written; no lock.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace weft {

// Objects stand in the order bad handle, null handle (whose number is `first`), then one for each row. Numbers from
// `first` to below `end` that no row has belong to the bad handle, at 0.
template <int first, int end, class Row, size_t n>
constexpr auto places_by_number(const Row (&rows)[n]) {
    static_assert(n + 2 <= 256, "places are kept in 8 bits");
    std::array<uint8_t, end - first> a{};
    a[0] = 1;
    for (size_t i = 0; i < n; i++) a[static_cast<size_t>(rows[i].id - first)] = static_cast<uint8_t>(i + 2);
    return a;
}
template <int first, size_t n>
constexpr int place_of(const std::array<uint8_t, n>& places, int number) {
    return number >= first && number < first + static_cast<int>(n) ? places[static_cast<size_t>(number - first)] : 0;
}

}  // namespace weft
