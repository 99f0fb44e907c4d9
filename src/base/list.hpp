// Intrusive first-in-first-out lists: the nodes live in the objects, so nothing is allocated. Free to all; whoever owns
// the list holds the lock that guards it (every list here belongs to a lane and is touched under its guard).
#pragma once
#include "base/assert.hpp"

namespace weft {

struct Link {
    Link* next;
};

struct Fifo {
    Link* head = nullptr;
    Link* tail = nullptr;  // meaningless while head is null

    bool empty() const { return head == nullptr; }

    void push(Link* n) {
        WEFT_ASSERT(head == nullptr || tail->next == nullptr);
        n->next = nullptr;
        if (head == nullptr) head = n;
        else tail->next = n;
        tail = n;
    }

    Link* pop() {
        Link* n = head;
        if (n != nullptr) head = n->next;
        return n;
    }

    // Unlinks `n`, whose predecessor is `before` (null for the head).
    void remove(Link* n, Link* before) {
        WEFT_ASSERT((before == nullptr ? head : before->next) == n);
        if (before == nullptr) head = n->next;
        else before->next = n->next;
        if (tail == n) tail = before;
    }

    // Unlinks `n` wherever it is; false when it is not on the list.
    bool remove(Link* n) {
        Link* before = nullptr;
        for (Link* i = head; i != nullptr; before = i, i = i->next)
            if (i == n) {
                remove(n, before);
                return true;
            }
        return false;
    }

    // For assertions and tests: the list ends, and at its tail.
    bool sound() const {
        const Link *last = nullptr, *fast = head, *slow = head;   // half as fast: met again only in a circle
        while (fast != nullptr) {
            last = fast;
            fast = fast->next;
            if (fast == nullptr) break;
            last = fast;
            fast = fast->next;
            slow = slow->next;
            if (fast == slow) return false;
        }
        return head == nullptr || last == tail;
    }
};

// A node on a circular doubly linked list; a head is a node linked to itself.
struct Ring2 {
    Ring2* next;
    Ring2* prev;

    void make_head() { next = prev = this; }
    bool alone() const { return next == this; }
    void push_back(Ring2* n) {
        WEFT_ASSERT(prev->next == this);
        n->prev = prev;
        n->next = this;
        prev->next = n;
        prev = n;
    }
    void unlink() {
        WEFT_ASSERT(prev->next == this && next->prev == this);
        prev->next = next;
        next->prev = prev;
    }

    // For assertions and tests: each neighbour knows the other. (A circle that does not come back here has a node with two.)
    bool sound() const {
        const Ring2* n = this;
        do {
            if (n->next->prev != n) return false;
            n = n->next;
        } while (n != this);
        return true;
    }
};

}  // namespace weft
