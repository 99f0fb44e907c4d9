#include "lane/ways.hpp"

namespace weft::lane {

using wire::shm::Blocks;
using wire::shm::Transfer;

void Ways::start(Choice choice) {
    *this = {};
    choice_ = choice;
    if (choice == pieces) never_ask();
    // The sender is told later, but writes to memory are faster than reads of another core's: they end at about the same time.
    for (Size& s : size_) s.share = 24;
}

// In whole pages, and one at least: a side that claims nothing would never move anything.
static uint32_t pages(uint64_t bytes) { return bytes == 0 ? 4096 : static_cast<uint32_t>((bytes + 4095) & ~uint64_t{4095}); }

Blocks Ways::begin(uint64_t bytes, bool crowd, uint64_t now_ns) {
    crowd |= under_way_ != 0;
    ++under_way_;
    if (!busy_) {
        busy_ = true;
        crowd_ = false;
        now_ = size_of(bytes);
        since_ns_ = now_ns;
        ended_ = 0;
        const Size& s = size_[now_];
        halves_ = choice_ == automatic ? (s.crowded ? s.crowd : s.alone).halves() : choice_ == halves;
    }
    crowd_ |= crowd;
    if (!halves_) return Blocks{};
    if (crowd || size_[now_].crowded) {  // whole messages, as there is another one for the other side
        const uint32_t n = pages(bytes < most_in_crowd ? bytes : most_in_crowd);
        return Blocks{{n, n}};
    }
    const uint64_t both = bytes < most_alone ? bytes : most_alone;
    const uint32_t mine = pages(both * size_[size_of(both)].share / 64);
    return Blocks{{pages(both > mine ? both - mine : 0), mine}};
}

bool Ways::end(const Transfer& t, bool waited, bool crowd, bool leaving, uint64_t now_ns) {
    --under_way_;
    if (!busy_) return false;
    crowd_ |= crowd;
    if (!crowd_) balance(t, waited);
    if (t.blocks.any() == halves_) ended_ += t.limit;
    if ((under_way_ != 0 || leaving) && ended_ < enough) return false;
    return conclude(now_ns);
}

bool Ways::conclude(uint64_t now_ns) {
    busy_ = false;
    Size& s = size_[now_];
    s.crowded = crowd_;
    Contest& c = crowd_ ? s.crowd : s.alone;
    if (choice_ != automatic || ended_ == 0 || c.over()) return false;
    c.report(halves_, ended_, now_ns - since_ns_);
    if (!c.over() || s.alone.asking_pays(true) || s.crowd.asking_pays(false)) return false;
    unasked_ |= 1u << now_;
    return true;
}

// Where each side copied just what it was to claim first, the one that waited gets more of the next.
void Ways::balance(const Transfer& t, bool waited) {
    if (t.limit > most_alone || t.arrived.by[Transfer::receiver].load(std::memory_order_relaxed) != t.blocks.of[Transfer::receiver]) return;
    uint8_t& share = size_[size_of(t.limit)].share;
    if (waited && share < most_share) ++share;
    if (!waited && share > least_share) --share;
}

}  // namespace weft::lane
