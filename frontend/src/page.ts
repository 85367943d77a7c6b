import { render } from "./main";

render();
