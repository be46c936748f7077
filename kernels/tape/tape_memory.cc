#include "kernels/tape/tape_memory.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace hippodrome {
namespace {

const char* Address(Tensor x) { return static_cast<const char*>(x.data); }

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

bool Overlap(const Rectangle& a, const Rectangle& b) {
  return a.row < b.row + b.rows && b.row < a.row + a.rows && a.col < b.col + b.cols &&
         b.col < a.col + a.cols;
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

void TapeMemory::Register(const OwnedTensor& matrix) {
  Matrix& owner = matrices_[Address(matrix.view)];
  owner = {};
  owner.view = matrix.view;
  owner.memory = matrix.memory;
}

void TapeMemory::DropUnused() {
  std::erase_if(matrices_, [](const auto& entry) { return entry.second.memory.use_count() == 1; });
}

TapeMemory::Matrix& TapeMemory::Owner(Tensor x) {
  auto after = matrices_.upper_bound(Address(x));
  if (after == matrices_.begin()) throw std::logic_error("tape: a matrix that it did not make");
  return std::prev(after)->second;
}

Rectangle TapeMemory::Place(const Matrix& owner, Tensor x) {
  const auto size = static_cast<int64_t>(SizeOf(owner.view.dtype));
  const int64_t offset = (Address(x) - Address(owner.view)) / size;
  const Rectangle place = {offset / owner.view.stride, offset % owner.view.stride, x.rows, x.cols};
  const bool same_rows = x.stride == owner.view.stride || x.rows == 1;
  if (!same_rows || place.row + place.rows > owner.view.rows ||
      place.col + place.cols > owner.view.cols) {
    throw std::logic_error("tape: a matrix that it did not make");
  }
  return place;
}

OwnedTensor TapeMemory::Spare(Tensor like) {
  for (const OwnedTensor& spare : spares_) {
    const bool fits = spare.view.rows == like.rows && spare.view.cols == like.cols &&
                      spare.view.dtype == like.dtype;
    if (fits && spare.memory.use_count() == 1) return spare;
  }
  const OwnedTensor made = like.dtype == DType::kBF16
                               ? backend_.NewActivations(like.rows, like.cols, DType::kBF16)
                               : backend_.NewTensor(like.rows, like.cols);
  spares_.push_back(made);
  return made;
}

std::shared_ptr<const SavedMatrix> TapeMemory::Save(Tensor x) {
  auto saved = std::make_shared<SavedMatrix>();
  saved->view = x;
  if (x.data == nullptr) return saved;
  auto& list = Owner(x).saved;
  std::erase_if(list, [](const auto& entry) { return entry.expired(); });
  list.push_back(saved);
  return saved;
}

void TapeMemory::BeforeWrite(Tensor y) {
  Matrix& owner = Owner(y);
  const Rectangle written = Place(owner, y);
  std::erase_if(owner.saved, [&](const std::weak_ptr<SavedMatrix>& entry) {
    const auto saved = entry.lock();
    if (saved == nullptr) return true;
    if (!Overlap(Place(owner, saved->view), written)) return false;
    saved->copy = Spare(saved->view);
    backend_.Copy(saved->view, saved->copy);
    saved->view = saved->copy;
    return true;
  });
}

Tensor TapeMemory::GradientAt(Matrix& owner, const Rectangle& place) {
  if (owner.gradient.view.data == nullptr) {
    owner.gradient = backend_.NewTensor(owner.view.rows, owner.view.cols);
  }
  return owner.gradient.view.Rows(place.row, place.rows).Cols(place.col, place.cols);
}

bool TapeMemory::Complete(Matrix& owner, const Rectangle& place) {
  const std::vector<Rectangle> missing = owner.set.Missing(place);
  int64_t area = 0;
  for (const Rectangle& part : missing) area += part.area();
  if (area == place.area()) return false;
  for (const Rectangle& part : missing) backend_.Fill(0, GradientAt(owner, part));
  owner.set.Add(place);
  return true;
}

Gradient TapeMemory::Into(Tensor x) {
  Matrix& owner = Owner(x);
  const Rectangle place = Place(owner, x);
  const bool add = Complete(owner, place);
  owner.set.Add(place);
  return {GradientAt(owner, place), add};
}

Tensor TapeMemory::AddInto(Tensor x) {
  const Gradient gradient = Into(x);
  if (!gradient.add) backend_.Fill(0, gradient.tensor);
  return gradient.tensor;
}

Tensor TapeMemory::Take(Tensor y) {
  Matrix& owner = Owner(y);
  const Rectangle place = Place(owner, y);
  return Complete(owner, place) ? GradientAt(owner, place) : Tensor{};
}

void TapeMemory::Unset(Tensor y) {
  Matrix& owner = Owner(y);
  owner.set.Remove(Place(owner, y));
}

void TapeMemory::UnsetAll() {
  for (auto& [address, matrix] : matrices_) matrix.set.Clear();
}

void TapeMemory::MakeParameter(Tensor x) { Owner(x).parameter = true; }

Tensor TapeMemory::OfParameter(Tensor x) {
  if (x.data == nullptr) return {};
  Matrix& owner = Owner(x);
  return owner.parameter ? GradientAt(owner, Place(owner, x)) : Tensor{};
}

}  // namespace hippodrome
