// What a later operation will read, asked for while many rows are multiplied: then processors wait
// for arithmetic, and memory has little to do.
#ifndef HIPPODROME_KERNELS_CPU_BASE_LATER_READS_H_
#define HIPPODROME_KERNELS_CPU_BASE_LATER_READS_H_

#include <cassert>
#include <cstdint>
#include <limits>
#include <vector>

namespace hippodrome::cpu {

// Cache lines in columns, each with one line of every row. Tasks that take them in this order, as
// ThreadPool::RunNeighbours() hands tasks out, leave each thread with the columns of its own tasks
// of a later loop that goes along them.
struct LaterReads {
  struct Row {
    const char* first;  // of column 0
    int64_t stride;     // bytes to the next column's line
  };

  int64_t lines() const { return static_cast<int64_t>(rows.size()) * columns; }

  std::vector<Row> rows;
  int64_t columns = 0;
};

// Those of a task, one with every so many of its steps.
class LaterLines {
 public:
  LaterLines() = default;  // none
  // Part `index` of `count` equal ones, for a task of `steps` steps: all of its lines, if there are
  // as many steps. `reads` must outlive it.
  LaterLines(const LaterReads& reads, int64_t index, int64_t count, int64_t steps) {
    const int64_t begin = reads.lines() * index / count;
    left_ = reads.lines() * (index + 1) / count - begin;
    if (left_ == 0) return;
    first_ = reads.rows.data();
    end_ = first_ + reads.rows.size();
    const auto rows = static_cast<int64_t>(reads.rows.size());
    row_ = first_ + begin % rows;
    column_ = begin / rows;
    every_ = steps / left_ > 0 ? steps / left_ : 1;
    until_next_ = every_;
  }

  // Of one step: asks for a line when it is time, into the second-level cache. Always inlined: GCC
  // finds a function that only prefetches free of effects, and drops its calls.
  [[gnu::always_inline]] void Step() {
    if (--until_next_ == 0) __builtin_prefetch(Take(), 0, 2);
  }

  // The next line. REQUIRES: left() > 0.
  [[gnu::always_inline]] const char* Take() {
    assert(left_ > 0);
    const char* const line = row_->first + column_ * row_->stride;
    if (++row_ == end_) {
      row_ = first_;
      ++column_;
    }
    until_next_ = --left_ > 0 ? every_ : kNever;
    return line;
  }

  int64_t left() const { return left_; }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  const LaterReads::Row* first_ = nullptr;
  const LaterReads::Row* end_ = nullptr;
  const LaterReads::Row* row_ = nullptr;  // of the next line, also below
  int64_t column_ = 0;
  int64_t left_ = 0;
  int64_t every_ = 0;
  int64_t until_next_ = kNever;
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_BASE_LATER_READS_H_
