#include "lane/ids.hpp"

#include <cstdlib>

namespace weft::lane {

void Ids::close() {
    free(slots_);
    slots_ = nullptr;
    count_ = 0;
    free_ = none;
}

bool Ids::grow() {
    const uint32_t count = count_ == 0 ? 64 : count_ * 2;
    auto* slots = static_cast<Slot*>(realloc(slots_, count * sizeof(Slot)));
    if (slots == nullptr) return false;
    slots_ = slots;
    for (uint32_t i = count_; i < count; ++i) slots[i] = {nullptr, lane_bits_ | 1, i + 1 < count ? i + 1 : none};
    free_ = count_;
    count_ = count;
    return true;
}

uint32_t Ids::in_use() const {
    uint32_t n = 0;
    for (uint32_t i = 0; i < count_; ++i) n += slots_[i].record != nullptr;
    return n;
}

}  // namespace weft::lane
