#include "engine/run/cpu/host_branches.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>

namespace eagle::exec {
namespace {

TEST(HostBranches, TheRuleIsThatOfGraphs) {
  EXPECT_EQ(resolve({.branches = 2, .largestSamples = 4096}, 2), Schedule::branchTasks);
  EXPECT_EQ(resolve({.branches = 2, .largestSamples = 4097}, 2), Schedule::workShare);
  EXPECT_EQ(resolve({.branches = 2, .largestSamples = 4096}, 1), Schedule::workShare);
  EXPECT_EQ(resolve({.branches = 1, .largestSamples = 8}, 8), Schedule::workShare);
  EXPECT_EQ(resolve({.branches = 2, .largestSamples = 8, .allPlans = false}, 2), Schedule::workShare);
  EXPECT_EQ(nameOf(Schedule::branchTasks), "branch_tasks");
}

TEST(HostBranches, EachBranchRunsItsStepsInOrderOnOneThread) {
  constexpr std::size_t count = 8;
  std::vector<std::vector<int>> order(count);
  std::vector<std::set<std::thread::id>> threads(count);
  std::vector<HostBranch> branches(count);
  for (std::size_t b = 0; b < count; ++b) {
    for (int step = 0; step < 5; ++step) {
      branches[b].push_back([&, b, step] {
        order[b].push_back(step);
        threads[b].insert(std::this_thread::get_id());
      });
    }
  }
  runHostBranches(branches, 3);
  for (std::size_t b = 0; b < count; ++b) {
    EXPECT_EQ(order[b], (std::vector<int>{0, 1, 2, 3, 4}));
    EXPECT_EQ(threads[b].size(), 1U);
  }
}

TEST(HostBranches, InsideARegionItRunsInPlace) {
  std::atomic<int> elsewhere = 0;
  std::atomic<int> ran = 0;
#pragma omp parallel num_threads(2)
  {
    const std::thread::id mine = std::this_thread::get_id();
    const HostBranch note{[&] {
      ++ran;
      if (std::this_thread::get_id() != mine) ++elsewhere;
    }};
    const std::vector<HostBranch> branches(4, note);
    runHostBranches(branches, 4);
  }
  EXPECT_EQ(elsewhere, 0);
  EXPECT_GE(ran, 4);
}

TEST(HostBranches, WhatAStepThrowsEndsItsBranchAndIsThrown) {
  std::atomic<int> ran = 0;
  const HostBranch broken{[] { throw std::runtime_error("mine"); }, [&] { ran += 100; }};
  const std::vector<HostBranch> branches = {{[&] { ++ran; }}, broken, {[&] { ++ran; }}};
  EXPECT_THROW(runHostBranches(branches, 2), std::runtime_error);
  EXPECT_EQ(ran, 2);
}

TEST(HostBranches, NoBranchIsNothingToDo) { runHostBranches({}, 2); }

}  // namespace
}  // namespace eagle::exec
