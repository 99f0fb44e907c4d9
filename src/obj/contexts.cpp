#include "obj/contexts.hpp"

#include <cstdlib>

namespace weft::obj {

void Contexts::open(int32_t world_rank, int32_t world_size) {
    bits_ = 32 - kinds_;
    for (int64_t ranks = 1; ranks < world_size; ranks *= 2) bits_--;
    lane_bits_ = bits_ >= 20 ? lane::most_lanes_log2 : 0;
    rank_ = world_rank;
    next_ = first_free;
    head_ = count_ = turn_ = 0;
    for (uint32_t& n : on_lane_) n = 0;
}

void Contexts::close() {
    free(freed_);
    freed_ = nullptr;
    capacity_ = head_ = count_ = 0;
    next_ = first_free;
}

uint32_t Contexts::least_used(LaneRange lanes) {
    const uint32_t n = lanes.end - lanes.first, from = ++turn_;
    uint32_t best = lanes.first + from % n;
    for (uint32_t i = 1; i < n; ++i)
        if (const uint32_t lane = lanes.first + (from + i) % n; on_lane_[lane] < on_lane_[best]) best = lane;
    return best;
}

Err Contexts::take(uint32_t* context, LaneRange lanes) {
    SpinGuard guard(spin_);
    const bool all_drawn = next_ >> (bits_ - lane_bits_) != 0;
    uint32_t counter;
    if (count_ >= kept_freed || (all_drawn && count_ > 0)) {
        counter = freed_[head_];
        head_ = (head_ + 1) % capacity_;
        count_--;
    } else if (!all_drawn) {
        counter = next_++;
    } else {
        return fail(Err::no_mem, "all %u context ids of this process are in use: free some communicators", next_);
    }
    const uint32_t lane = lane_bits_ != 0 ? least_used(lanes) : 0;
    ++on_lane_[lane];
    *context = context_of(rank_, counter, lane);
    return Err::ok;
}

void Contexts::give(uint32_t context) {
    uint32_t number = context >> kinds_, counter = (number & ((1u << bits_) - 1)) >> lane_bits_;
    if (static_cast<int32_t>(number >> bits_) != rank_ || counter < first_free) return;
    SpinGuard guard(spin_);
    --on_lane_[lane_of(context)];
    if (count_ == capacity_) {
        uint32_t grown = capacity_ == 0 ? 64 : capacity_ * 2;
        auto* ring = static_cast<uint32_t*>(malloc(grown * sizeof(uint32_t)));
        if (ring == nullptr) return;  // the id is lost, which only matters after all others are used up
        for (uint32_t i = 0; i < count_; i++) ring[i] = freed_[(head_ + i) % capacity_];
        free(freed_);
        freed_ = ring;
        capacity_ = grown;
        head_ = 0;
    }
    freed_[(head_ + count_++) % capacity_] = counter;
}

}  // namespace weft::obj
