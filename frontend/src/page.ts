import { render } from "./main";

void render();
