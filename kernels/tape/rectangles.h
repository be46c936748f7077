// Parts of a matrix.
#ifndef HIPPODROME_KERNELS_TAPE_RECTANGLES_H_
#define HIPPODROME_KERNELS_TAPE_RECTANGLES_H_

#include <cstdint>
#include <vector>

namespace hippodrome {

struct Rectangle {
  int64_t row = 0;
  int64_t col = 0;
  int64_t rows = 0;
  int64_t cols = 0;

  int64_t area() const { return rows * cols; }
};

// A set of elements of a matrix, as disjoint rectangles.
class Rectangles {
 public:
  void Add(const Rectangle& r);
  void Remove(const Rectangle& r);
  void Clear() { parts_.clear(); }
  // The elements of `r` that are not in the set.
  std::vector<Rectangle> Missing(const Rectangle& r) const;

 private:
  std::vector<Rectangle> parts_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_TAPE_RECTANGLES_H_
