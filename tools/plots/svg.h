// Parts of SVG pictures.
#ifndef HIPPODROME_TOOLS_PLOTS_SVG_H_
#define HIPPODROME_TOOLS_PLOTS_SVG_H_

#include <string>

namespace hippodrome {

// A piece of SVG with its upper left corner at the origin, sizes in pixels.
struct Drawing {
  int width = 0;
  int height = 0;
  std::string svg;
};

// The number in up to four digits, which is enough for a label; a whole one below a million in all.
std::string Label(double value);

// `text` at a point; anchor: "start", "middle" or "end".
std::string SvgText(int x, int y, const std::string& text, const char* anchor = "start");
// The same, read upwards.
std::string SvgVerticalText(int x, int y, const std::string& text);

// A filled rectangle.
std::string SvgRect(int x, int y, int width, int height, const std::string& fill);
// The outline of one.
std::string SvgFrame(int x, int y, int width, int height);

// `drawing` moved.
std::string SvgAt(int x, int y, const Drawing& drawing);

// A whole file.
std::string SvgFile(const Drawing& drawing);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_PLOTS_SVG_H_
