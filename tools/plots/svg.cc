#include "tools/plots/svg.h"

#include <cmath>
#include <cstdio>

namespace hippodrome {
namespace {

// name="value", with a space before it.
std::string Attribute(const std::string& name, const std::string& value) {
  return " " + name + "=\"" + value + "\"";
}
std::string Attribute(const std::string& name, int value) {
  return Attribute(name, std::to_string(value));
}

std::string Box(int x, int y, int width, int height) {
  return Attribute("x", x) + Attribute("y", y) + Attribute("width", width) +
         Attribute("height", height);
}

std::string Move(int x, int y) {
  return "translate(" + std::to_string(x) + " " + std::to_string(y) + ")";
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace

std::string Label(double value) {
  char text[32];
  const bool whole = value == std::round(value) && std::abs(value) < 1e6;
  std::snprintf(text, sizeof(text), whole ? "%.0f" : "%.4g", value);
  return text;
}

std::string SvgText(int x, int y, const std::string& text, const char* anchor) {
  return "<text" + Attribute("x", x) + Attribute("y", y) + Attribute("text-anchor", anchor) + ">" +
         Escaped(text) + "</text>\n";
}

std::string SvgVerticalText(int x, int y, const std::string& text) {
  return "<text" + Attribute("transform", Move(x, y) + " rotate(-90)") +
         Attribute("text-anchor", "middle") + ">" + Escaped(text) + "</text>\n";
}

std::string SvgRect(int x, int y, int width, int height, const std::string& fill) {
  return "<rect" + Box(x, y, width, height) + Attribute("fill", fill) + "/>\n";
}

std::string SvgFrame(int x, int y, int width, int height) {
  return "<rect" + Box(x, y, width, height) + Attribute("fill", "none") +
         Attribute("stroke", "#888") + "/>\n";
}

std::string SvgAt(int x, int y, const Drawing& drawing) {
  return "<g" + Attribute("transform", Move(x, y)) + ">\n" + drawing.svg + "</g>\n";
}

std::string SvgFile(const Drawing& drawing) {
  return "<svg" + Attribute("xmlns", "http://www.w3.org/2000/svg") +
         Attribute("width", drawing.width) + Attribute("height", drawing.height) +
         Attribute("font-family", "sans-serif") + Attribute("font-size", "12") + ">\n" +
         SvgRect(0, 0, drawing.width, drawing.height, "white") + drawing.svg + "</svg>\n";
}

}  // namespace hippodrome
