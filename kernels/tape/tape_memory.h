// What a tape knows about the matrices that models compute in: their gradients, and the values that
// later operations overwrite.
#ifndef HIPPODROME_KERNELS_TAPE_TAPE_MEMORY_H_
#define HIPPODROME_KERNELS_TAPE_TAPE_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kernels/training_backend.h"

namespace hippodrome {

// A part of a matrix.
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

// The value of a matrix as it was when it was saved: in place until something overwrites it.
struct SavedMatrix {
  Tensor view;
  OwnedTensor copy;  // empty while `view` is in place
};

// Models reuse their matrices, so a gradient belongs to a place in memory at a time. Every matrix
// has a shadow of its shape that holds, while the tape runs backwards, the gradient of what the
// place held at that moment; elements that nothing has contributed to are unset, which means zero.
// Not thread-safe; `backend` must outlive it.
class TapeMemory {
 public:
  explicit TapeMemory(TrainingBackend& backend) : backend_(backend) {}

  // From now on `matrix` and its slices are known, and kept even if nobody else does.
  void Register(const OwnedTensor& matrix);
  // Lets go of matrices that nobody else keeps.
  void DropUnused();

  // ---- Values ----------------------------------------------------------------------------------

  // Keeps the present value of `x`, without copying it, for as long as the result lives.
  std::shared_ptr<const SavedMatrix> Save(Tensor x);
  // To be called before `y` is overwritten: copies what was saved of it.
  void BeforeWrite(Tensor y);

  // ---- Gradients -------------------------------------------------------------------------------

  // Where the next contribution to the gradient of `x` goes. The caller must make it.
  Gradient Into(Tensor x);
  // As Into(), where the contribution can only be added.
  Tensor AddInto(Tensor x);
  // The gradient of `y`, or an empty tensor if it is all zero.
  Tensor Take(Tensor y);
  // Forgets the gradient of `y`, whose value before the operation that is undone was not used.
  void Unset(Tensor y);
  void UnsetAll();

  // The gradient of a parameter that was uploaded to `x`, or an empty tensor: zero at first, it is
  // only added to, and UnsetAll() leaves it.
  Tensor OfParameter(Tensor x);
  void MakeParameter(Tensor x);

 private:
  struct Matrix {
    Tensor view;
    std::shared_ptr<void> memory;
    OwnedTensor gradient;
    Rectangles set;
    bool parameter = false;
    std::vector<std::weak_ptr<SavedMatrix>> saved;
  };

  Matrix& Owner(Tensor x);
  static Rectangle Place(const Matrix& owner, Tensor x);
  Tensor GradientAt(Matrix& owner, const Rectangle& place);
  // Zeroes what is unset of `place`, unless that is all of it. Returns whether any of it was set.
  bool Complete(Matrix& owner, const Rectangle& place);
  // A matrix for a copy, from those that are not used any more.
  OwnedTensor Spare(Tensor like);

  TrainingBackend& backend_;
  std::map<const char*, Matrix> matrices_;  // by address
  std::vector<OwnedTensor> spares_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_TAPE_TAPE_MEMORY_H_
