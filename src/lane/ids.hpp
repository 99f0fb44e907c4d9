// Identities of this lane's records on the wire: lane, generation and index in one number, never an address, so a late or damaged
// control message finds no record instead of reading wrong memory. Included by lane.hpp; all under the lane's guard.
#pragma once
#include <cstdint>

#include "base/err.hpp"

namespace weft::lane {

class Ids {
public:
    constexpr Ids() = default;
    explicit constexpr Ids(uint16_t lane) : lane_bits_(uint32_t{lane} << 24) {}
    // Frees the table.
    void close();
    // The identity of `record` from now on; 0 when out of memory.
    uint64_t put(void* record) {
        if (WEFT_UNLIKELY(free_ == none) && !grow()) return 0;
        const uint32_t i = free_;
        Slot& s = slots_[i];
        free_ = s.next;
        s.record = record;
        return static_cast<uint64_t>(s.generation) << 32 | i;
    }
    // The record with this identity; null if there is none, or none any more.
    void* find(uint64_t id) const {
        const auto i = static_cast<uint32_t>(id);
        if (WEFT_UNLIKELY(i >= count_ || slots_[i].generation != id >> 32)) return nullptr;
        return slots_[i].record;
    }
    // The same, and ends the identity.
    void* take(uint64_t id) {
        void* const record = find(id);
        if (WEFT_UNLIKELY(record == nullptr)) return nullptr;
        const auto i = static_cast<uint32_t>(id);
        Slot& s = slots_[i];
        s.record = nullptr;
        s.generation = (s.generation & ~generation_mask) | ((s.generation + 1) & generation_mask);
        if ((s.generation & generation_mask) == 0) ++s.generation;
        s.next = free_;
        free_ = i;
        return record;
    }
    uint32_t in_use() const;

private:
    static constexpr uint32_t none = UINT32_MAX, generation_mask = (1u << 24) - 1;
    struct Slot {
        void* record;          // null: free
        uint32_t generation;   // with the lane's number in the upper 8 bits; never 0
        uint32_t next;         // while free
    };
    WEFT_COLD bool grow();

    Slot* slots_ = nullptr;
    uint32_t count_ = 0, free_ = none;
    uint32_t lane_bits_ = 0;
};

}  // namespace weft::lane
