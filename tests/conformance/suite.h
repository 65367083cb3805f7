// What every case of the suite starts from: a session on the host that it runs on.
//
//   class Affine : public OnEveryHost {};
//   EAGLE_ON_EVERY_HOST(Affine);
//   TEST_P(Affine, TakesAnyNumberOfSamples) { ... session() ... }
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "eagle/client/graph.h"
#include "eagle/client/session.h"
#include "tests/conformance/host_registry.h"
#include "tests/conformance/hosts.h"
#include "tests/conformance/models.h"
#include "tests/conformance/not_on_gpu.h"

namespace eagle::conformance {

class OnEveryHost : public ::testing::TestWithParam<HostUnderTest> {
protected:
  void SetUp() override {
    if (GetParam().has("gpu")) {
      // "Hosts/Kernels" and "Name/3"
      const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
      const std::string_view suite = info->test_suite_name(), name = info->name();
      const std::string_view why =
          why_not_on_gpu(suite.substr(suite.find('/') + 1), name.substr(0, name.find('/')));
      if (!why.empty()) GTEST_SKIP() << why;
    }
    StatusOr<Session> opened = GetParam().open();
    if (!opened.ok() && opened.status().code() == Code::unavailable)
      GTEST_SKIP() << opened.status().message();
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    session_ = std::move(*opened);
  }

  [[nodiscard]] const Session& session() const { return *session_; }
  [[nodiscard]] bool remote() const { return GetParam().has("remote"); }
  // Graphs run there; runs until samples are done are refused.
  [[nodiscard]] bool on_gpu() const { return GetParam().has("gpu"); }

  // Arrays; a failure to make one ends the program, so that cases read like programs.
  template <typename T>
  [[nodiscard]] Array<T> full(std::int64_t n, T value) const {
    return must(session().full<T>({n}, value));
  }
  template <typename T>
  [[nodiscard]] Array<T> zeros(const Shape& shape) const {
    return must(session().zeros<T>(shape));
  }
  template <typename T>
  static T must(StatusOr<T> result) {
    EXPECT_TRUE(result.ok()) << result.status().to_string();
    if (!result.ok()) std::abort();
    return std::move(*result);
  }

  // The session is as good as new: a kernel runs and gives its values.
  void expect_works() const {
    const auto x = full<double>(8, 3.0);
    const auto y = zeros<double>({8});
    Graph g(session());
    ASSERT_TRUE(g.add({affine(), {{"x", x}, {"y", y}, {"a", 2.0}, {"b", 1.0}}}).ok());
    const Status built = g.build();
    ASSERT_TRUE(built.ok()) << built.to_string();
    const auto report = g.launch();
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    EXPECT_EQ(y[7], 7.0);
  }

private:
  std::optional<Session> session_;
};

// The status refuses for this reason and its text holds all of these.
inline void expect_refused(const Status& status, Reason reason,
                           std::initializer_list<std::string_view> words) {
  EXPECT_EQ(info(status.reason()).wire_name, info(reason).wire_name) << status.message();
  for (const std::string_view word : words) EXPECT_THAT(status.message(), ::testing::HasSubstr(word));
}

inline std::vector<HostUnderTest> all_hosts() {
  register_hosts();
  return registered_hosts();
}

}  // namespace eagle::conformance

#define EAGLE_ON_EVERY_HOST(Fixture)                                                               \
  INSTANTIATE_TEST_SUITE_P(Hosts, Fixture, ::testing::ValuesIn(::eagle::conformance::all_hosts()), \
                           [](const auto& tested) { return tested.param.name; })
