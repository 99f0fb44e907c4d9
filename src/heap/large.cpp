#include "heap/large.hpp"

#include <cstring>

#include "heap/slices.hpp"
#include "os/memory.hpp"

namespace weft::heap {

namespace {

uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

}  // namespace

uint64_t LargeHead::take(uint64_t units, uint64_t align, uint64_t end, int32_t part) {
    SpinGuard guard(lock);
    if (count == most) return 0;
    uint64_t first = round_up((sizeof(LargeHead) + unit_bytes - 1) / unit_bytes, align);
    int32_t i = 0;
    for (; i < count && blocks[i].first < first + units; i++) first = round_up(blocks[i].first + blocks[i].units, align);
    if (first > end || end - first < units) return 0;
    memmove(blocks + i + 1, blocks + i, static_cast<size_t>(count - i) * sizeof *blocks);
    blocks[i] = {first, units, part};
    count++;
    return first;
}

int32_t LargeHead::find(uint64_t first) const {
    for (int32_t i = 0; i < count; i++)
        if (blocks[i].first == first) return i;
    return -1;
}

uint64_t LargeHead::units_at(uint64_t first) {
    SpinGuard guard(lock);
    const int32_t i = find(first);
    return i >= 0 ? blocks[i].units : 0;
}

int32_t LargeHead::owner_of(uint64_t first) {
    SpinGuard guard(lock);
    const int32_t i = find(first);
    return i >= 0 ? blocks[i].part : -1;
}

void LargeHead::give(uint64_t first) {
    SpinGuard guard(lock);
    const int32_t i = find(first);
    if (i < 0) return;
    count--;
    memmove(blocks + i, blocks + i + 1, static_cast<size_t>(count - i) * sizeof *blocks);
}

void* Slices::take_large(size_t n, size_t align) {
    const uint64_t end = geometry.large_bytes() / unit_bytes;
    if (base == nullptr || forked || n == 0 || n > geometry.large_bytes()) return nullptr;
    const auto part = static_cast<int32_t>(static_cast<uint64_t>(own - base) / geometry.part_bytes());
    const uint64_t first = large().take(round_up(n, unit_bytes) / unit_bytes, round_up(align, unit_bytes) / unit_bytes, end, part);
    return first != 0 ? base + bytes + first * unit_bytes : nullptr;
}

void Slices::give_large(void* p) {
    if (forked) return;   // it is the parent's, too
    os::punch(p, bytes_of_large(p));   // while nobody else has these addresses
    large().give(large_unit(p));
}

uint64_t Slices::bytes_of_large(const void* p) const { return large().units_at(large_unit(p)) * unit_bytes; }

PartHead* Slices::head_of_large(const void* p) const {
    const int32_t part = large().owner_of(large_unit(p));
    return part >= 0 ? reinterpret_cast<PartHead*>(base + static_cast<uint64_t>(part) * geometry.part_bytes()) : nullptr;
}

}  // namespace weft::heap
