// SPDX-License-Identifier: GPL-2.0-or-later
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

public class Shop {
	private static final Object LEDGER = new Object();
	private static long sum;

	static void closeLedger(int cnt) {
		for (int i = 0; i < cnt; i++)
			sum = (sum * 31 + i) % 1000003;
	}

	private static void handle(HttpExchange exchange) throws IOException {
		byte[] body = "ok\n".getBytes();

		synchronized (LEDGER) {
			closeLedger(exchange.getRequestURI().getPath().equals("/slow") ? 3000000 : 10);
		}
		exchange.sendResponseHeaders(200, body.length);
		exchange.getResponseBody().write(body);
		exchange.close();
	}

	public static void main(String[] args) throws IOException {
		HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);

		server.createContext("/", Shop::handle);
		server.setExecutor(Executors.newFixedThreadPool(4));
		server.start();
	}
}
