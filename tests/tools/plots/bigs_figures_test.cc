#include "tools/plots/bigs_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace hippodrome::bigs_figures_test {
namespace {

using testing::ElementsAre;

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Whether every element of `xml` is closed in order, and every quote within it.
bool IsWellFormed(const std::string& xml) {
  std::vector<std::string> open;
  size_t at = 0;
  while ((at = xml.find('<', at)) != std::string::npos) {
    const size_t end = xml.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = xml.substr(at + 1, end - at - 1);
    at = end;
    if (Count(tag, "\"") % 2 != 0 || tag.find('<') != std::string::npos) return false;
    const std::string name = tag.substr(0, tag.find(' '));
    if (tag.starts_with("/")) {
      if (open.empty() || "/" + open.back() != name) return false;
      open.pop_back();
    } else if (!tag.ends_with("/")) {
      open.push_back(name);
    }
  }
  return open.empty() && xml.find('&') == std::string::npos;
}

// Two layers of three points.
EncoderKernels Small() {
  return {.layers = 2,
          .heads = 1,
          .length = 3,
          .values = {1, -2, 3, -4, 5, -6, 0.5f, 0, 0, 0.25f, 0, -8}};
}

EncoderKernels Ones(int64_t layers, int64_t heads, int64_t length) {
  return {.layers = layers,
          .heads = heads,
          .length = length,
          .values = std::vector<float>(2 * layers * heads * length, 1)};
}

TEST(BigsFiguresTest, ForwardIsBeforeAndBackwardAfter) {
  EXPECT_THAT(ByPosition(Small(), 0, 0, 2), ElementsAre(3, 2, 4, 5, 6));
  EXPECT_THAT(ByPosition(Small(), 1, 0, 1), ElementsAre(0, 0.5f, 0));
}

TEST(BigsFiguresTest, HeadsHaveTheirOwnKernels) {
  EncoderKernels kernels{.layers = 1, .heads = 2, .length = 2};
  kernels.values = {1, 2, 3, 4, 5, 6, 7, 8};  // forward of heads 0 and 1, then backward
  EXPECT_THAT(ByPosition(kernels, 0, 0, 1), ElementsAre(2, 5, 6));
  EXPECT_THAT(ByPosition(kernels, 0, 1, 1), ElementsAre(4, 7, 8));
}

TEST(BigsFiguresTest, NearKernelsHaveACellForEachLayerAndPosition) {
  const std::string svg = DrawBigsFigure3(Ones(23, 1, 128)).svg;
  EXPECT_EQ(Count(svg, "<rect"), 23 * 21 + 3);  // a frame, the key and its frame
  EXPECT_EQ(Count(svg, ">relative position<"), 1);
  EXPECT_EQ(Count(svg, ">layer<"), 1);
  EXPECT_EQ(Count(svg, ">22<"), 1);  // the last layer
  EXPECT_EQ(Count(svg, ">-10<"), 1);
}

TEST(BigsFiguresTest, ShadesRunFromTheLeastToTheLargestValue) {
  const std::string svg = DrawBigsFigure3(Small()).svg;
  EXPECT_EQ(Count(svg, "<rect"), 2 * 5 + 3);
  EXPECT_EQ(Count(svg, "fill=\"#08306b\""), 1);  // 8
  EXPECT_EQ(Count(svg, "fill=\"#f7fbff\""), 3);  // the zeros of layer 1
  EXPECT_EQ(Count(svg, ">8<"), 1);               // of the key
}

TEST(BigsFiguresTest, RowsOfHeadsAreNamedByBoth) {
  const std::string svg = DrawBigsFigure3(Ones(2, 3, 4)).svg;
  EXPECT_EQ(Count(svg, "<rect"), 2 * 3 * 7 + 3);
  EXPECT_EQ(Count(svg, ">1.2<"), 1);
  EXPECT_EQ(Count(svg, ">layer.head<"), 1);
}

TEST(BigsFiguresTest, EachLayerHasACurveForEachDirectionAndHead) {
  const std::string svg = DrawBigsFigure4(Ones(5, 2, 100)).svg;
  EXPECT_EQ(Count(svg, "<path"), 5 * 2 * 2);
  EXPECT_EQ(Count(svg, ">layer 4<"), 1);
  EXPECT_EQ(Count(svg, ">-99<"), 5);
}

TEST(BigsFiguresTest, CurvesStartAtTheMiddleAndReachTheEdges) {
  const std::string svg = DrawBigsFigure4(Small()).svg;
  // Layer 0 is scaled to 6, layer 1 to 8: the panel is 80 high, and its frame 180 wide.
  EXPECT_EQ(Count(svg, "d=\"M146.00 88.67L101.00 75.33L56.00 62.00\""), 1) << svg;
  EXPECT_EQ(Count(svg, "d=\"M146.00 48.67L191.00 35.33L236.00 22.00\""), 1) << svg;
  EXPECT_EQ(Count(svg, ">8<"), 1);
}

TEST(BigsFiguresTest, LongCurvesKeepThePeaks) {
  EncoderKernels kernels = Ones(1, 1, 100000);
  kernels.values[77777] = -4;
  const std::string svg = DrawBigsFigure4(kernels).svg;
  EXPECT_EQ(Count(svg, " 22.00"), 1);  // the peak alone reaches the top
  EXPECT_LT(svg.size(), 40000u);
}

TEST(BigsFiguresTest, FilesAreWellFormedWhateverTheValues) {
  EXPECT_FALSE(IsWellFormed("<a><b></a>"));
  const float infinity = std::numeric_limits<float>::infinity();
  EncoderKernels strange = Small();
  strange.values = {infinity, 0, 0, 0, 0, 0, infinity - infinity, 0, -infinity, 0, 0, 0};
  EncoderKernels zero = Ones(3, 1, 1);
  zero.values.assign(zero.values.size(), 0);
  for (const EncoderKernels& kernels : {Small(), Ones(23, 2, 30), strange, zero}) {
    const std::string svg = PlotBigsFigures(kernels);
    EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" ")) << svg;
    EXPECT_TRUE(IsWellFormed(svg)) << svg;
  }
}

}  // namespace
}  // namespace hippodrome::bigs_figures_test
