// SPDX-License-Identifier: GPL-2.0-or-later
/* A check that is missing: tiles that lie outside of the window are drawn like the others, and thrown away later. */
#include "serve.h"

#include <vector>

struct Tile {
	int row;
	bool visible;
	uint32_t drawn;
};

class Canvas
{
      public:
	explicit Canvas(size_t cnt, size_t visible) : tiles_(cnt)
	{
		for (size_t i = 0; i < cnt; i++)
			tiles_[i] = {(int)i, i < visible, 0};
	}

	__attribute__((noinline)) uint32_t render()
	{
		uint32_t shown = 0;

		for (Tile &tile : tiles_) {
			shade(tile);
			if (tile.visible)
				shown += tile.drawn;
		}
		return shown;
	}

      private:
	__attribute__((noinline)) void shade(Tile &tile)
	{
		uint32_t colour = (uint32_t)tile.row;

		for (int line = 0; line < 2600; line++)
			colour = (colour ^ colour >> 9) * 2654435761u;
		tile.drawn = colour;
	}

	std::vector<Tile> tiles_;
};

static size_t answer(const char *path, char *body)
{
	bool wide = !strncmp(path, "/map", 4);
	Canvas canvas(wide ? 1600 : 40, 40);

	return (size_t)sprintf(body, "%u\n", canvas.render());
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
