// Dimensions: numbers of a view, one a dimension.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

namespace eagle::plane {

// As a std::vector of integers, but that up to two of them lie in the object, which is no larger than one:
// few arrays have more, and a graph has thousands of views that are copied now and then.
class Dimensions {
public:
  using value_type = std::int64_t;
  using iterator = std::int64_t*;
  using const_iterator = const std::int64_t*;
  using reverse_iterator = std::reverse_iterator<iterator>;
  using const_reverse_iterator = std::reverse_iterator<const_iterator>;

  Dimensions() = default;
  Dimensions(std::initializer_list<std::int64_t> numbers) : Dimensions(numbers.begin(), numbers.end()) {}
  Dimensions(const std::vector<std::int64_t>& numbers) : Dimensions(numbers.begin(), numbers.end()) {}
  template <std::forward_iterator Iterator>
  Dimensions(Iterator first, Iterator last)
      : Dimensions(static_cast<std::size_t>(std::distance(first, last))) {
    std::copy(first, last, begin());
  }
  Dimensions(const Dimensions& other) : Dimensions(other.begin(), other.end()) {}
  Dimensions(Dimensions&& other) noexcept { swap(other); }
  Dimensions& operator=(Dimensions other) noexcept {
    swap(other);
    return *this;
  }
  ~Dimensions() {
    if (size_ > most_within) delete[] room_.apart;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] iterator begin() { return size_ > most_within ? room_.apart : room_.within; }
  [[nodiscard]] const_iterator begin() const { return size_ > most_within ? room_.apart : room_.within; }
  [[nodiscard]] iterator end() { return begin() + size_; }
  [[nodiscard]] const_iterator end() const { return begin() + size_; }
  [[nodiscard]] auto rbegin() const { return const_reverse_iterator(end()); }
  [[nodiscard]] auto rend() const { return const_reverse_iterator(begin()); }
  std::int64_t& operator[](std::size_t index) { return begin()[index]; }
  std::int64_t operator[](std::size_t index) const { return begin()[index]; }
  [[nodiscard]] std::int64_t& front() { return *begin(); }
  [[nodiscard]] std::int64_t front() const { return *begin(); }
  [[nodiscard]] std::int64_t& back() { return begin()[size_ - 1]; }
  [[nodiscard]] std::int64_t back() const { return begin()[size_ - 1]; }

  // As arrays of clients have them.
  operator std::vector<std::int64_t>() const { return {begin(), end()}; }

  // Those that are new are 0.
  void resize(std::size_t size) {
    Dimensions other(size);
    std::fill(std::copy_n(begin(), std::min(size, size_), other.begin()), other.end(), 0);
    swap(other);
  }
  void push_back(std::int64_t number) {
    resize(size_ + 1);
    back() = number;
  }
  void insert(const_iterator at, std::int64_t number) {
    const std::ptrdiff_t place = at - begin();
    push_back(number);
    std::rotate(begin() + place, end() - 1, end());
  }
  void erase(const_iterator at) {
    const std::ptrdiff_t place = at - begin();
    std::rotate(begin() + place, begin() + place + 1, end());
    resize(size_ - 1);
  }

  friend bool operator==(const Dimensions& a, const Dimensions& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend auto operator<=>(const Dimensions& a, const Dimensions& b) {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

private:
  static constexpr std::size_t most_within = 2;
  union Room {
    std::int64_t within[most_within];
    std::int64_t* apart;
  };

  // Of numbers that are still to be given.
  explicit Dimensions(std::size_t size) : size_(size) {
    if (size > most_within) room_.apart = new std::int64_t[size];
  }
  void swap(Dimensions& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
  }

  std::size_t size_ = 0;
  Room room_ = {};
};

}  // namespace eagle::plane
