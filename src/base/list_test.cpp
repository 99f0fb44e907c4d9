#include "base/list.hpp"

#include <gtest/gtest.h>

using namespace weft;

namespace {

TEST(Fifo, KeepsItsOrderAndIsSound) {
    Link a{}, b{}, c{};
    Fifo f;
    EXPECT_TRUE(f.sound());
    for (Link* l : {&a, &b, &c}) f.push(l);
    EXPECT_TRUE(f.sound());
    EXPECT_TRUE(f.remove(&c));
    EXPECT_FALSE(f.remove(&c));
    EXPECT_TRUE(f.sound());
    EXPECT_EQ(f.tail, &b);
    f.push(&c);
    EXPECT_EQ(f.pop(), &a);
    EXPECT_EQ(f.pop(), &b);
    EXPECT_EQ(f.pop(), &c);
    EXPECT_EQ(f.pop(), nullptr);
    EXPECT_TRUE(f.sound());
}

TEST(Fifo, ABrokenOneIsNotSound) {
    Link a{}, b{}, c{};
    Fifo f;
    for (Link* l : {&a, &b, &c}) f.push(l);
    c.next = &b;   // in a circle
    EXPECT_FALSE(f.sound());
    c.next = nullptr;
    f.tail = &b;   // what is pushed now would be lost
    EXPECT_FALSE(f.sound());
}

TEST(Ring2, IsSoundUntilALinkIsWrong) {
    Ring2 head, a, b;
    head.make_head();
    EXPECT_TRUE(head.sound());
    head.push_back(&a);
    head.push_back(&b);
    EXPECT_TRUE(head.sound());
    a.unlink();
    EXPECT_TRUE(head.sound());
    a.next = a.prev = &head;
    head.next = &a;        // only one way
    EXPECT_FALSE(head.sound());
}

#if WEFT_ASSERTIONS
TEST(Lists, WhatMustHoldIsTestedAtEachStep) {
    Link a{}, b{};
    Fifo f;
    f.push(&a);
    f.push(&b);
    f.tail = &a;
    Link c{};
    EXPECT_DEATH(f.push(&c), "this must hold");
    Ring2 head, node;
    head.make_head();
    head.push_back(&node);
    node.unlink();
    EXPECT_DEATH(node.unlink(), "this must hold");   // it is on no list
}
#endif

}  // namespace
