#include "kernels/tape/rectangles.h"

#include <algorithm>

namespace hippodrome {
namespace {

// Appends what is left of `a` without `b`: up to four rectangles round the hole.
void Subtract(const Rectangle& a, const Rectangle& b, std::vector<Rectangle>& left) {
  const int64_t top = std::max(a.row, b.row);
  const int64_t bottom = std::min(a.row + a.rows, b.row + b.rows);
  const int64_t first = std::max(a.col, b.col);
  const int64_t last = std::min(a.col + a.cols, b.col + b.cols);
  if (top >= bottom || first >= last) return left.push_back(a);
  const Rectangle around[] = {
      {a.row, a.col, top - a.row, a.cols},
      {bottom, a.col, a.row + a.rows - bottom, a.cols},
      {top, a.col, bottom - top, first - a.col},
      {top, last, bottom - top, a.col + a.cols - last},
  };
  for (const Rectangle& part : around) {
    if (part.area() > 0) left.push_back(part);
  }
}

std::vector<Rectangle> Without(const std::vector<Rectangle>& from, const Rectangle& hole) {
  std::vector<Rectangle> left;
  for (const Rectangle& part : from) Subtract(part, hole, left);
  return left;
}

}  // namespace

void Rectangles::Add(const Rectangle& r) {
  Remove(r);
  parts_.push_back(r);
}

void Rectangles::Remove(const Rectangle& r) { parts_ = Without(parts_, r); }

std::vector<Rectangle> Rectangles::Missing(const Rectangle& r) const {
  std::vector<Rectangle> missing = {r};
  for (const Rectangle& part : parts_) missing = Without(missing, part);
  return missing;
}

}  // namespace hippodrome
