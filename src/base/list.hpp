// Intrusive first-in-first-out lists: the nodes live in the objects, so nothing is allocated. Free to all; whoever owns
// the list holds the lock that guards it (every list here belongs to a lane and is touched under its guard).
#pragma once

namespace weft {

struct Link {
    Link* next;
};

struct Fifo {
    Link* head = nullptr;
    Link* tail = nullptr;  // meaningless while head is null

    bool empty() const { return head == nullptr; }

    void push(Link* n) {
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
};

// A node on a circular doubly linked list; a head is a node linked to itself.
struct Ring2 {
    Ring2* next;
    Ring2* prev;

    void make_head() { next = prev = this; }
    bool alone() const { return next == this; }
    void push_back(Ring2* n) {
        n->prev = prev;
        n->next = this;
        prev->next = n;
        prev = n;
    }
    void unlink() {
        prev->next = next;
        next->prev = prev;
    }
};

}  // namespace weft
